"""The public models that several benchmarks use, in plain torch."""
