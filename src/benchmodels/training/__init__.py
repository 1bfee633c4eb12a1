"""Measures the training steps of a script that is not instrumented."""
