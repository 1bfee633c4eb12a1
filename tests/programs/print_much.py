"""Prints that many megabytes without a single newline, then a line with a number.

python print_much.py MEGABYTES
"""

import os
import sys

block = b"x" * (1 << 20)
for _ in range(int(sys.argv[1])):
    os.write(1, block)
os.write(1, b"\nspeed=7\n")
