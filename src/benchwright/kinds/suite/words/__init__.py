"""The language of suite files: placeholders and expressions."""
