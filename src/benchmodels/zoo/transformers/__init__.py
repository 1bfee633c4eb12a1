"""Every architecture of the installed transformers library, built from its configuration with random weights."""
