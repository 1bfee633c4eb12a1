"""Exceptions and exit codes as failures to report: kind and text."""

from __future__ import annotations

import errno
import os
import re
import signal
from typing import NamedTuple, Optional

OUT_OF_MEMORY, UNSUPPORTED, UNAVAILABLE = "out_of_memory", "unsupported", "unavailable"
ERROR, CRASHED, TIMED_OUT = "error", "crashed", "timed_out"
_NO_MEMORY = re.compile(
    r"out of memory|can't allocate memory|cannot allocate memory|bad_alloc|bad allocation|failed to allocate|OUT_OF_MEMORY|"
    r"CUBLAS_STATUS_ALLOC_FAILED|not enough memory",
    re.IGNORECASE,
)
MAX_TEXT = 2000
LEAST_ROOM_BYTES = 1 << 20


class ModelFailure(NamedTuple):
    """The fields of a `failure` event; `stage` None: the current one."""

    kind: str
    text: str
    stage: Optional[str] = None
    operator: Optional[str] = None


def failure_of(error: BaseException) -> ModelFailure:
    """The failure behind an exception. One that knows its stage (a runtime's Unsupported) keeps it."""
    stage, operator = getattr(error, "stage", None), getattr(error, "operator", None)
    text = getattr(error, "text", None)
    if isinstance(stage, str) and isinstance(text, str):
        kind = getattr(error, "kind", None)
        return ModelFailure(kind if isinstance(kind, str) else UNSUPPORTED, _short(text), stage, operator)
    if is_out_of_memory(error):
        return ModelFailure(OUT_OF_MEMORY, _short(_described(error)))
    return ModelFailure(ERROR, _short(_described(error)))


def is_out_of_memory(error: BaseException) -> bool:
    """On the host or a device. Runtimes raise their own exceptions, so most are recognised by their text."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    of_runtime = isinstance(error, RuntimeError) or type(error).__module__.startswith("onnxruntime.")
    return of_runtime and _NO_MEMORY.search(str(error)) is not None


def failure_of_ending(code: int, stage: str, ooms_before: Optional[int]) -> ModelFailure:
    """For a child that ended with that code (as `Popen.returncode`) during `stage`."""
    if code >= 0:
        return ModelFailure(CRASHED, f"the build process ended with code {code} in {stage}", stage)
    name = _signal_name(-code)
    if -code == signal.SIGKILL:
        ooms = kernel_ooms()
        if ooms is not None and ooms_before is not None and ooms > ooms_before:
            return ModelFailure(OUT_OF_MEMORY, f"the kernel killed the build process ({name}): out of memory", stage)
    return ModelFailure(CRASHED, f"the build process was killed by {name} in {stage}", stage)


def kernel_ooms(path: str = "/proc/vmstat") -> Optional[int]:
    """The number of out-of-memory kills since boot; None: unknown."""
    return read_number(path, "oom_kill ")


def read_number(path: str, field: str) -> Optional[int]:
    """The number behind `field`, at the start of a line of a file such as /proc/meminfo; None: not there."""
    try:
        with open(path) as file:
            return next((int(line.split()[1]) for line in file if line.startswith(field)), None)
    except (OSError, ValueError):
        return None


def has_room(folder: str) -> bool:
    """Whether its disk has room left. Some converters do not notice a full disk, others do not report it."""
    try:
        room = os.statvfs(folder)
    except OSError:
        return True
    return room.f_bavail * room.f_frsize >= LEAST_ROOM_BYTES


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _described(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        place = f": {error.filename}" if error.filename else ""
        return f"{os.strerror(error.errno)}{place}"
    return f"{type(error).__name__}: {error}".rstrip(": ")


def _short(text: str) -> str:
    text = text.strip()
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
