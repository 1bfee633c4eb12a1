"""The interface of milabench that benchfiles are written against. Seen by them only, in a process of their own."""
