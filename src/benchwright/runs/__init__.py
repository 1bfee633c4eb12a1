"""Run folders, and the runs in them."""
