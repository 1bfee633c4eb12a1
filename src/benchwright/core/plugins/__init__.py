"""Variants of a seam: the built-in ones, and those that installed packages add by entry points."""
