"""Standard descriptors that are closed, or that nobody reads."""

from __future__ import annotations

import os
import sys


def fill_closed() -> None:
    """Opens what the caller closed (`>&-`) on nothing: the next file would get its number, and what is printed."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one


def forget_stdout() -> None:
    """Nothing more can be written there; without this the interpreter would complain about it as it ends."""
    if sys.stdout is not None:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
