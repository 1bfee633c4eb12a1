"""The commands about model scripts."""
