"""Ends a short-lived process of ours without taking Python apart, which costs 5 to 10 ms and changes nothing."""

from __future__ import annotations

import atexit
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def leave(code: int) -> NoReturn:
    """As `sys.exit`: exit handlers run and output is written first.

    Python ends the process itself where something is left to do: a thread to wait for, output that cannot be written.
    """
    threading = sys.modules.get("threading")
    if threading is None or threading.active_count() == 1:
        atexit._run_exitfuncs()
        try:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None and not stream.closed:
                    stream.flush()
        except OSError:
            pass  # Python will meet the same error, and say so
        else:
            os._exit(code)
    sys.exit(code)
