"""milabench's benchfile.py, read without running it."""
