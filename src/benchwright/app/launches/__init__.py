"""What happens before, between and after the launches of a run."""
