"""milabench's run folders, read."""
