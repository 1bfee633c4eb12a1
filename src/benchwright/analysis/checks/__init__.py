"""Can a result be believed? The validation layers."""
