"""Kernel calls that Python lacks, and small files of the kernel.

On systems other than Linux the calls do nothing. A file that cannot be read is None or empty; nothing raises.
"""

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


def read_text(path: str) -> str | None:
    """The stripped text; None if there is none."""
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20).decode(errors="replace").strip() or None
    except (OSError, ValueError):
        return None


def read_number(path: str) -> int | None:
    """A whole number, possibly negative."""
    try:
        return int(read_text(path) or "")
    except ValueError:
        return None


def list_folder(path: str) -> list[str]:
    """The names in it, sorted."""
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []
