"""Warm starts: a program forked from a process that has already imported what it needs."""
