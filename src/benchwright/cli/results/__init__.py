"""Commands that look at the runs that were kept."""
