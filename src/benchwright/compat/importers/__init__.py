"""Importers of the results of benchmarking tools."""
