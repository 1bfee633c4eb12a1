"""Suites: YAML files of benchmarks."""
