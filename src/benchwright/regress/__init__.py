"""Revisions, A/B, watching a repository, bisection: everything handed the function that measures."""
