"""Time on an accelerator: an event after each step, and one synchronisation for a window of steps.

Launches are asynchronous, so the host's clock shows when work was submitted, not when it was done. All calls come from the
loop's own thread, between two steps. An event takes the host microseconds, so short steps share one, and very short ones
share the host's stamps as well.
"""

from __future__ import annotations

import sys
from time import perf_counter_ns
from typing import Any, Callable, List, Optional

WINDOW_NS = 500_000_000
MAX_EVENTS_PER_WINDOW = 512
MAX_STEPS_PER_WINDOW = 1 << 16
STEPS_PER_EVENT_COST = 400  # events may take this fraction of the time of the steps: 0.25 %
STAMPED_FROM_NS = (
    400_000  # the host's stamps, and writing them, take a microsecond or two: less than 0.5 % of such a step
)
_TRIAL_EVENTS = 16


class TorchTimer:
    """Times the steps of a window on `torch.cuda` (also ROCm) or `torch.xpu`, whose events are alike, on the stream that is
    current at each event. Any method may raise; the loop then goes on without it."""

    def __init__(self, backend: Any, raw_stream: Optional[Callable[[int], int]] = None) -> None:
        self._backend = backend
        self._capturing: Callable[[], bool] = getattr(backend, "is_current_stream_capturing", lambda: False)
        self._raw_stream = raw_stream
        self._device = self._raw = -1
        self._stream: Any = None
        self._events: List[Any] = []
        self._used = 0
        self._stride = 1
        self._event_ns = 0

    def begin(self, step_ns: float, interval_ns: float = 0) -> int:
        """A window of steps begins, each about `step_ns` long (0: unknown). Returns how many share an event: events are at least
        `interval_ns` apart."""
        self._raw = -1
        self._device = self._backend.current_device() if self._raw_stream is not None else -1
        if step_ns and not self._event_ns:
            self._event_ns = self._cost_of_event()
        apart_ns = max(STEPS_PER_EVENT_COST * self._event_ns, interval_ns)
        self._stride = 1 + int(apart_ns / step_ns) if step_ns else 1
        self._used = 0
        self.mark()
        # Work submitted before the loop, or between epochs, is not part of this window.
        self._events[0].synchronize()
        return self._stride

    def mark(self) -> None:
        """That many more steps have been submitted."""
        if self._capturing():
            raise RuntimeError("a graph is being captured across two steps")
        if self._used == len(self._events):
            self._events.append(self._backend.Event(enable_timing=True))
        self._events[self._used].record(self._current_stream())
        self._used += 1

    def wait(self, steps: int) -> None:
        """Returns when the device has done all steps of the window."""
        if self._used <= -(-steps // self._stride):  # the last steps have none yet
            self.mark()
        self._events[self._used - 1].synchronize()

    def read(self) -> List[int]:
        """After `wait`: the nanoseconds on the device from each event to the next."""
        used = self._events[: self._used]
        return [round(begin.elapsed_time(end) * 1e6) for begin, end in zip(used, used[1:])]

    def _cost_of_event(self) -> int:
        """Nanoseconds of a `mark` and a `read`: the median, since another thread may hold the interpreter for a while."""
        costs: List[int] = []
        for _ in range(_TRIAL_EVENTS):
            self._used, begin = 0, perf_counter_ns()
            self.mark()
            self.mark()
            marked = perf_counter_ns()
            self._events[1].synchronize()
            done = perf_counter_ns()
            self.read()
            costs.append((marked - begin) // 2 + perf_counter_ns() - done)
        return sorted(costs)[_TRIAL_EVENTS // 2]

    def _current_stream(self) -> Any:
        """Creating a stream object costs as much as recording an event, so the last one is reused."""
        if self._raw_stream is None:
            return self._backend.current_stream()
        raw = self._raw_stream(self._device)
        if raw != self._raw:
            self._stream, self._raw = self._backend.current_stream(self._device), raw
        return self._stream


def find_timer() -> Optional[TorchTimer]:
    """A timer if this process uses an accelerator by now. Imports and initialises nothing."""
    torch = sys.modules.get("torch")
    for name in ("cuda", "xpu"):
        backend = getattr(torch, name, None)
        is_initialized = getattr(backend, "is_initialized", None)
        if is_initialized is not None and is_initialized() and hasattr(backend, "Event"):
            raw = getattr(getattr(torch, "_C", None), f"_{name}_getCurrentRawStream", None)
            return TorchTimer(backend, raw if hasattr(backend, "current_device") else None)
    return None


def never_free(timer: TorchTimer) -> None:
    """In a forked child: torch aborts one that frees the events of its parent."""
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(timer))


def spread(ns: int, steps: int) -> List[int]:
    """A time divided among its steps, to the nanosecond."""
    return [ns // steps + (i < ns % steps) for i in range(steps)]


def no_device() -> Optional[TorchTimer]:
    return None
