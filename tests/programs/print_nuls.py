"""Prints NUL bytes, bytes that are no text, and a number."""

import os

os.write(1, b"\0" * 5000 + b"\nspeed=\0\nspeed=3.5\n\xff\xfe\n" + b"\0" * 10)
