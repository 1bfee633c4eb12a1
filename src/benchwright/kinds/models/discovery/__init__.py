"""Finds the models of scripts: runs each script once, reads what it reports, and keeps what was found."""
