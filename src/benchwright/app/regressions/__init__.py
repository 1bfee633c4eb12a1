"""Composes what finds regressions: A/B, watch, history, bisect, explain."""
