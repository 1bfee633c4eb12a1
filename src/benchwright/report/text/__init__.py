"""Numbers and texts as reports write them."""
