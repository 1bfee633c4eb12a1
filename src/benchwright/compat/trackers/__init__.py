"""Exports to experiment trackers."""
