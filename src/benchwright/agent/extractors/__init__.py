"""Reads metrics out of a program's log while it grows."""
