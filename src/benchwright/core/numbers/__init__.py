"""Numbers: columns, aggregates, and quantities as people write them."""
