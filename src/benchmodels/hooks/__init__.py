"""Changing a running program, and looking at its objects, without it noticing."""
