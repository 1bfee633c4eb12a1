"""From Benchmarks and a Machine to Jobs. Pure functions."""
