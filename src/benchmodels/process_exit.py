"""Ends a process in the middle of a script: our events are written, the script's exit handlers do not run."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from time import perf_counter_ns
from typing import List, NoReturn

import benchprobe

PR_SET_PDEATHSIG = 1
PATIENCE_S = 5.0


def leave(code: int) -> NoReturn:
    """Ends this process at once."""
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except Exception:  # closed by the script
        pass
    probe = benchprobe.active_probe()
    try:
        if probe is not None:
            probe.outside.settle()
            probe.writer.close({"event": "probe_end", "t": perf_counter_ns(), "how": "end"})
    finally:
        os._exit(code)


def end_children() -> None:
    """Kills this process's running children, such as compilers."""
    for child in _children():
        try:
            os.kill(child, signal.SIGKILL)
        except OSError:
            pass


def end_compile_workers() -> None:
    """Ends the workers torch keeps for its next compilation: they would briefly outlive this process. Not waited for long:
    torch gives them five minutes, and everything has been reported."""
    workers = sys.modules.get("torch._inductor.async_compile")
    if workers is None:
        return

    def end() -> None:
        with suppress(Exception):  # torch's own, not in every version
            workers.shutdown_compile_workers()

    ending = threading.Thread(target=end, daemon=True)
    ending.start()
    ending.join(PATIENCE_S)


def _children() -> List[int]:
    found: List[int] = []
    try:
        for task in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{task}/children") as file:
                found += map(int, file.read().split())
    except (OSError, ValueError):
        pass
    return found


def end_with_parent(parent: int) -> None:
    """Has the kernel kill this process when its parent ends; ends it now if the parent has ended already."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
