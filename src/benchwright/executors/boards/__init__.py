"""Boards run plain programs: anything with a shell that files can be sent to. No Python, no shared folder."""
