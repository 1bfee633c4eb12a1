"""Models in scripts: found by a hook on their call, built for runtimes, measured and checked. See `benchprobe.models.__main__`."""
