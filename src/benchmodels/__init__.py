"""Models in scripts: found by a hook on their call, built for runtimes, measured and checked. See `benchmodels.__main__`."""
