"""Time on an accelerator: an event after each step, and one synchronisation for a window of steps.

Launches are asynchronous, so the host's clock shows when work was submitted, not when it was done. All calls come from the
loop's own thread, between two steps.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, List, Optional, Protocol

WINDOW_NS = 500_000_000
MAX_STEPS_PER_WINDOW = 512


class DeviceTimer(Protocol):
    """Times the steps of a window. Any method may raise; the loop then goes on without it."""

    def begin(self) -> None:
        """A window begins: the first step follows."""

    def mark(self) -> None:
        """A step has been submitted."""

    def finish(self) -> List[int]:
        """Waits for the device; returns the time of each step on it, in nanoseconds."""


class TorchTimer:
    """For `torch.cuda` (also ROCm) and `torch.xpu`, whose events are alike; on the stream current at each step."""

    def __init__(self, backend: Any, raw_stream: Optional[Callable[[int], int]] = None) -> None:
        self._backend = backend
        self._capturing: Callable[[], bool] = getattr(backend, "is_current_stream_capturing", lambda: False)
        self._raw_stream = raw_stream
        self._device = self._raw = -1
        self._stream: Any = None
        self._events: List[Any] = []
        self._used = 0

    def begin(self) -> None:
        self._used, self._raw = 0, -1
        self._device = self._backend.current_device() if self._raw_stream is not None else -1
        self.mark()
        # Work submitted before the loop, or between epochs, is not part of this window.
        self._events[0].synchronize()

    def mark(self) -> None:
        if self._capturing():
            raise RuntimeError("a graph is being captured across two steps")
        if self._used == len(self._events):
            self._events.append(self._backend.Event(enable_timing=True))
        self._events[self._used].record(self._current_stream())
        self._used += 1

    def finish(self) -> List[int]:
        used = self._events[: self._used]
        used[-1].synchronize()
        return [round(begin.elapsed_time(end) * 1e6) for begin, end in zip(used, used[1:])]

    def _current_stream(self) -> Any:
        """Creating a stream object costs as much as recording an event, so the last one is reused."""
        if self._raw_stream is None:
            return self._backend.current_stream()
        raw = self._raw_stream(self._device)
        if raw != self._raw:
            self._stream, self._raw = self._backend.current_stream(self._device), raw
        return self._stream


def find_timer() -> Optional[DeviceTimer]:
    """A timer if this process uses an accelerator by now. Imports and initialises nothing."""
    torch = sys.modules.get("torch")
    for name in ("cuda", "xpu"):
        backend = getattr(torch, name, None)
        is_initialized = getattr(backend, "is_initialized", None)
        if is_initialized is not None and is_initialized() and hasattr(backend, "Event"):
            raw = getattr(getattr(torch, "_C", None), f"_{name}_getCurrentRawStream", None)
            return TorchTimer(backend, raw if hasattr(backend, "current_device") else None)
    return None


def no_device() -> Optional[DeviceTimer]:
    return None
