"""Results of other tools, read as Runs."""
