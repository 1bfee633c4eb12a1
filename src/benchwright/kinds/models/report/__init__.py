"""What reports say of models."""
