"""Runtimes: ways to run a model, one file each behind the contract in `base`."""
