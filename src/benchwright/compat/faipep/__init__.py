"""FAI-PEP: its result folders and messages, written and read."""
