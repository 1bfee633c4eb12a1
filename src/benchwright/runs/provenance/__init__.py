"""Provenance of a run's numbers: code, packages, environment."""
