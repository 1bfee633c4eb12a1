"""Two runs, or two interleaved benchmarks of one run, compared metric by metric."""
