"""Results of a test besides its records: golden errors, power, statistics, and the report."""
