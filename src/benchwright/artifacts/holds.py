"""Locks on folders of the cache: shared while a process uses one, exclusive while one is removed."""

from __future__ import annotations

import fcntl
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchwright.core.file_lock import try_lock


class Holds:
    """Holds of this process, until `release`, or until this object or the process ends, however it ends."""

    def __init__(self) -> None:
        self._handles: dict[Path, int] = {}
        weakref.finalize(self, _close_all, self._handles)

    def hold(self, folder: Path) -> None:
        """Nobody removes it from now on. Without locks (some network file systems), they may."""
        if folder not in self._handles:
            with suppress(OSError):
                self._handles[folder] = handle = os.open(folder, os.O_RDONLY)
                fcntl.flock(handle, fcntl.LOCK_SH)  # whoever removes it is quick

    def release(self, folder: Path) -> None:
        if (handle := self._handles.pop(folder, None)) is not None:
            os.close(handle)


@contextmanager
def unused(folder: Path) -> Iterator[bool]:
    """Whether no process uses it; if so, none will until the block ends."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        yield True
        return
    try:
        yield try_lock(handle)
    finally:
        os.close(handle)


def _close_all(handles: dict[Path, int]) -> None:
    for handle in handles.values():
        with suppress(OSError):
            os.close(handle)
    handles.clear()
