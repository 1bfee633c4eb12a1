"""Reads what a benchmark program prints: an observer's records, tflite's summary, result files of other tools. Pure functions."""
