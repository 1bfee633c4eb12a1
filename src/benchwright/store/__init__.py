"""The index of runs: SQLite or PostgreSQL."""
