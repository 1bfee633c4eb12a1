"""The commands about regressions."""
