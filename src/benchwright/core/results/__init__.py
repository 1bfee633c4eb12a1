"""What follows from measurements: summaries, comparisons, scores, checks."""
