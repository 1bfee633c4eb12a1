"""Instrumented loops: their steps, their figures, and whether they can be believed."""
