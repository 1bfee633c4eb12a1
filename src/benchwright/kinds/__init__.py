"""Readers that turn what a user names into Benchmarks."""
