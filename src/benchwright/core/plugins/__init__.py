"""The variants of a seam: built in, or added by installed packages through entry points."""
