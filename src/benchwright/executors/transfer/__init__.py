"""Sends files and folders to machines that share no file system with this one, by content, over any shell."""
