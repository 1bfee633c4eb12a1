"""From a suite file to Benchmarks."""
