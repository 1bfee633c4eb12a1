"""Jobs of a suite's benchmarks."""
