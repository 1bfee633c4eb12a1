"""The validation layers: checks whether a result is credible."""
