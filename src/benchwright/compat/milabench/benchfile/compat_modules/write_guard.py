"""Refuses writes of a benchfile outside of where a benchmark may write: its folder, the suite's folders, the temporary one."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {
    "os.mkdir": 1,
    "os.remove": 1,
    "os.rmdir": 1,
    "os.rename": 2,
    "os.link": 2,
    "os.symlink": 2,
    "os.truncate": 1,
}


def refuse_writes_outside(folders: Iterable[str]) -> None:
    """From now on and for good, in this process: PermissionError where one is tried. What programs do that it starts is not seen."""
    allowed = tuple(os.path.realpath(folder) for folder in (*folders, tempfile.gettempdir(), "/dev"))

    def check(path: Any) -> None:
        if isinstance(path, int):
            return
        real = os.path.realpath(os.fsdecode(path))
        if not any(real == folder or real.startswith(f"{folder}{os.sep}") for folder in allowed):
            raise PermissionError(f"a benchfile may write to its own folder and those of the suite, not to {real}")

    def audit(event: str, about: tuple[Any, ...]) -> None:
        if event == "open" and about[0] is not None and isinstance(about[2], int) and about[2] & _WRITES:
            check(about[0])
        for path in about[: _CHANGES.get(event, 0)]:
            check(path)

    sys.addaudithook(audit)
