"""Results of other tools, imported as Runs and exported from them."""
