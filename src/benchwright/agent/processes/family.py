"""Ties between parent and child processes, by kernel calls that Python lacks. Off Linux they do nothing."""

from __future__ import annotations

import ctypes
import os
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# Looked up once: what runs between fork and exec must not load libraries.
_PRCTL = ctypes.CDLL(None, use_errno=True).prctl if sys.platform == "linux" else None


def adopt_orphans() -> bool:
    """Make orphaned descendants children of this process from now on."""
    return _PRCTL is not None and _PRCTL(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def signal_me_when_parent_dies(signal_number: int, parent: int) -> bool:
    """Ask the kernel for `signal_number` when `parent` ends; False if it has ended already."""
    if _PRCTL is not None:
        _PRCTL(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
    return os.getppid() == parent
