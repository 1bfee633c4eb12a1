"""Environments of measured programs."""
