"""When a loop is warm and when it has been measured enough: pure functions of the step times, no clock, no I/O."""
