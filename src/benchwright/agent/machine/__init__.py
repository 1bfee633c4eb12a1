"""Facts about this machine, and its state."""
