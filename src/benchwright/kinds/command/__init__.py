"""A command, given on the command line."""
