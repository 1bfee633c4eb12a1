"""Locks that are released when the processes holding them end, however they end."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from benchwright.core.file_lock import try_lock

_LOOK_AGAIN_S = 0.1


@contextmanager
def locked(
    path: str,
    *,
    waiting: Callable[[], None] = lambda: None,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[int]:
    """Holds the lock `path`; yields its descriptor, which a child may inherit to hold it too.

    `waiting` is called once if another process has it. Raises InterruptedError if `stopped` becomes true while waiting.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        warned = False
        while not try_lock(handle):
            if not warned:
                waiting()
                warned = True
            if stopped():
                raise InterruptedError(errno.EINTR, "asked to stop", path)
            time.sleep(_LOOK_AGAIN_S)
        yield handle
    finally:
        os.close(handle)
