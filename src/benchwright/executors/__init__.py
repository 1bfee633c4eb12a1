"""Executors run Jobs somewhere and say how they ended."""
