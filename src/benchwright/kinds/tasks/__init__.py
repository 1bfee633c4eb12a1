"""Task files: sections with a command each, and the metrics to read from its log."""
