"""Placeholders and expressions in the words of a suite."""
