"""Measuring one model on one runtime."""
