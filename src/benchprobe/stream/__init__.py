"""The way from what a loop leaves behind to lines of the event stream."""
