"""The interface of milabench that benchfiles are written against. Only they see it, in a separate process."""
