"""Secrets: found by name and by shape, and replaced before anything is written."""
