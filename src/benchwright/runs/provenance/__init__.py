"""What the numbers of a run depend on: code, packages, environment."""
