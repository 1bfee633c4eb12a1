"""Changes a running program and inspects its objects without the program noticing."""
