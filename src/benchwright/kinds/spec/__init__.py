"""Specifications: one description of a model's tests, for every program, runtime and device."""
