"""Output of a program: its log and its data, followed while they grow."""
