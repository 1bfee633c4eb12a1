"""Setup of a suite: environments, preparations, pins; and new benchmarks."""
