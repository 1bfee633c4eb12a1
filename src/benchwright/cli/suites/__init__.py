"""Commands about suites: their environments, data, definitions and matrices."""
