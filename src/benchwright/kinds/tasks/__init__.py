"""Task files of the deep-learning benchmark driver."""
