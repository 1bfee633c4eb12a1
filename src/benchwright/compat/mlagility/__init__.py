"""MLAgility, later turnkey."""
