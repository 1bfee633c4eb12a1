"""milabench's suites, run folders, files and score."""
