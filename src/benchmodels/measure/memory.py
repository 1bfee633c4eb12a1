"""The most memory that this process had since a moment of our choosing."""

from __future__ import annotations

import resource
import sys
from contextlib import contextmanager
from typing import Any, Iterator, Optional


class PeakMemory:
    """From here on: the kernel's own mark is reset, where it lets us; else the peak of the whole life, an upper bound."""

    def __init__(self) -> None:
        self.is_upper_bound = not _reset()
        self._so_far = 0
        _reset_device()

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What is done inside is ours, and does not count."""
        self._so_far = max(self._so_far, self.host_bytes())
        yield
        self.is_upper_bound = not _reset() or self.is_upper_bound

    def host_bytes(self) -> int:
        found = None if self.is_upper_bound else _high_water_mark()
        if found is not None:
            return max(found, self._so_far)
        self.is_upper_bound = True
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

    def device_bytes(self) -> Optional[int]:
        """What torch had allocated on the device at most; None: torch uses none here."""
        cuda = _cuda()
        return None if cuda is None else int(cuda.max_memory_allocated())


def _reset(path: str = "/proc/self/clear_refs") -> bool:
    try:
        with open(path, "w") as file:
            file.write("5")
        return True
    except OSError:
        return False


def _high_water_mark() -> Optional[int]:
    try:
        with open("/proc/self/status") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return None


def _cuda() -> Optional[Any]:
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None


def _reset_device() -> None:
    cuda = _cuda()
    if cuda is not None:
        cuda.reset_peak_memory_stats()


def available_host_bytes() -> Optional[int]:
    """What may still be taken without pushing anybody out; None: not known."""
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return None
