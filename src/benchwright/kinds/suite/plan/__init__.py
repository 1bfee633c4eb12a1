"""How a suite's benchmarks become jobs."""
