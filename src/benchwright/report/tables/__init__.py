"""The tables of reports, each defined once for every format."""
