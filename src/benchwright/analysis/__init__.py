"""Pure functions from samples to numbers. Nothing here does I/O."""
