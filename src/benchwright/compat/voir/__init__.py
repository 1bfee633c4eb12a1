"""voir: what its lines mean, and our file for scripts that it runs together."""
