"""The interpreter for a user's scripts."""

from __future__ import annotations

import shutil
import sys


def default_python() -> str:
    """The interpreter a shell would start for `python`, since that is where the user's packages are."""
    return shutil.which("python") or shutil.which("python3") or sys.executable
