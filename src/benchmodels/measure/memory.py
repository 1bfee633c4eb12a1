"""Peak memory of this process since a chosen moment."""

from __future__ import annotations

import resource
import sys
from contextlib import contextmanager
from typing import Any, Dict, Iterator, Optional

from benchmodels.failures import read_number


class PeakMemory:
    """Peak from here on: resets the kernel's high-water mark if allowed; otherwise the process's lifetime peak, an upper bound."""

    def __init__(self) -> None:
        self.is_upper_bound = not _reset()
        self._so_far = 0
        self.device_phases: Dict[str, int] = {}  # torch's peak in each part of a measurement
        _reset_device()

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Memory allocated inside is ours and does not count."""
        self._so_far = max(self._so_far, self.host_bytes())
        yield
        self.is_upper_bound = not _reset() or self.is_upper_bound

    def host_bytes(self) -> int:
        kib = None if self.is_upper_bound else read_number("/proc/self/status", "VmHWM:")
        if kib is not None:
            return max(kib * 1024, self._so_far)
        self.is_upper_bound = True
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

    def end_phase(self, name: str) -> None:
        """Counts torch's device memory since the last call towards this phase."""
        cuda = used_cuda()
        if cuda is not None:
            self.device_phases[name] = int(cuda.max_memory_allocated())
            cuda.reset_peak_memory_stats()

    def device_bytes(self) -> Optional[int]:
        """Peak allocation by torch on the device; None: torch uses no device."""
        cuda = used_cuda()
        return None if cuda is None else max([int(cuda.max_memory_allocated()), *self.device_phases.values()])

    def device_view(self, alone: bool) -> Dict[str, float]:
        """Now: what torch has reserved for its allocations, how much of that lies unused between them, and what the driver says
        is used on the device, by everybody and with the runtime's own: only if no neighbour has memory there (`alone`)."""
        cuda = used_cuda()
        if cuda is None:
            return {}
        free, total = cuda.mem_get_info()
        reserved = int(cuda.memory_reserved())
        unused = int(cuda.memory_stats().get("inactive_split_bytes.all.current", 0))
        found = {"memory.device_reserved": float(reserved)}
        if alone:
            found["memory.device_driver"] = float(total - free)
        return {**found, "memory.device_fragmentation": unused / reserved} if reserved else found


def _reset(path: str = "/proc/self/clear_refs") -> bool:
    try:
        with open(path, "w") as file:
            file.write("5")
        return True
    except OSError:
        return False


def used_cuda() -> Optional[Any]:
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None


def _reset_device() -> None:
    cuda = used_cuda()
    if cuda is not None:
        cuda.reset_peak_memory_stats()


def available_host_bytes() -> Optional[int]:
    """Memory available without swapping; None: not known."""
    kib = read_number("/proc/meminfo", "MemAvailable:")
    return None if kib is None else kib * 1024
