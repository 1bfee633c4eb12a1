"""Finds the models that a script builds and calls."""
