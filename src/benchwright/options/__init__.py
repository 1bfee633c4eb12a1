"""Options: the table they are made from, the values that users write, and `Options`, which is handed on whole."""
