"""Whether what a runtime returns is right."""
