"""Locks that are released when the processes holding them end, however they end."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
        said = False
        while not _try(handle):
            if not said:
                waiting()
                said = True
            if stopped():
                raise InterruptedError(errno.EINTR, "asked to stop", path)
            time.sleep(_LOOK_AGAIN_S)
        yield handle
    finally:
        os.close(handle)


def _try(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        if error.errno in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
            return True  # a network file system without locks: go on unprotected
        raise
    return True
