"""Watching a repository: which commit is next, what it is compared with, and when a regression is called one."""
