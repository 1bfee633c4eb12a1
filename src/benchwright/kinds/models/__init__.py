"""Models: those in scripts, and model files."""
