"""From what was raised to a failure that can be told: its kind and its text."""

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
    """As the event has it; `stage` None: that which ran."""

    kind: str
    text: str
    stage: Optional[str] = None
    operator: Optional[str] = None


def failure_of(error: BaseException) -> ModelFailure:
    """What an exception means. One that knows its own stage (a runtime's Unsupported) keeps it."""
    stage, operator = getattr(error, "stage", None), getattr(error, "operator", None)
    text = getattr(error, "text", None)
    if isinstance(stage, str) and isinstance(text, str):
        kind = getattr(error, "kind", None)
        return ModelFailure(kind if isinstance(kind, str) else UNSUPPORTED, _short(text), stage, operator)
    if is_out_of_memory(error):
        return ModelFailure(OUT_OF_MEMORY, _short(_described(error)))
    return ModelFailure(ERROR, _short(_described(error)))


def is_out_of_memory(error: BaseException) -> bool:
    """Of the host or a device. Runtimes raise their own exceptions, so most are told by their words."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    of_runtime = isinstance(error, RuntimeError) or type(error).__module__.startswith("onnxruntime.")
    return of_runtime and _NO_MEMORY.search(str(error)) is not None


def failure_of_ending(code: int, stage: str, ooms_before: Optional[int]) -> ModelFailure:
    """Of a child that ended by itself with that code (as `Popen.returncode`) before it was done with `stage`."""
    if code >= 0:
        return ModelFailure(CRASHED, f"the process that builds ended with code {code} in {stage}", stage)
    name = _signal_name(-code)
    if -code == signal.SIGKILL:
        ooms = kernel_ooms()
        if ooms is not None and ooms_before is not None and ooms > ooms_before:
            return ModelFailure(
                OUT_OF_MEMORY, f"the kernel ended the process that builds ({name}): no memory was left", stage
            )
    return ModelFailure(CRASHED, f"the process that builds was ended by {name} in {stage}", stage)


def kernel_ooms(path: str = "/proc/vmstat") -> Optional[int]:
    """How many processes the kernel has ended for want of memory since it was started; None: it does not say."""
    try:
        with open(path) as file:
            for line in file:
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return None


def has_room(folder: str) -> bool:
    """Whether its disk has any room left. Some converters do not notice when it has not, and others do not say so."""
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
