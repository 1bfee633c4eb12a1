"""From what a loop records to lines of the event stream."""
