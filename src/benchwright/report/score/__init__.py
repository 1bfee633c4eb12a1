"""Scores in reports."""
