"""Commands that fill and look after the store."""
