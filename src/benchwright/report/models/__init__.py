"""Models in reports."""
