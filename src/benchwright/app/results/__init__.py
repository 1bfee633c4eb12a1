"""The runs that were kept: found, listed, compared, deleted, and put into the store."""
