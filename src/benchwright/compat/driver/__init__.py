"""The deep-learning benchmark driver: its result files, read and written."""
