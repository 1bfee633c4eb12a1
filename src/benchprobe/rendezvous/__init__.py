"""How processes that are measured together meet, take turns and stop at the same step."""
