"""What a suite needs before it runs: environments, preparations, pins; and new benchmarks."""
