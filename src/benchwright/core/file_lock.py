"""Locks of the kernel: they end with the process that holds them, however it ends."""

from __future__ import annotations

import errno
import fcntl


def try_lock(handle: int, *, shared: bool = False) -> bool:
    """Locks an open file or folder until it is closed; False if another process holds it.

    Some network file systems have no locks: then everybody gets it.
    """
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES)
    return True
