"""The bookkeeping of one pass through a loop, done between its chunks.

A chunk is a series of steps with nothing but time stamps between them. Stop rules, the barrier and the device work between
two chunks; the next one starts with a new stamp, so that time belongs to no step.
"""

from __future__ import annotations

from collections.abc import Sequence as SequenceABC
from operator import index
from threading import get_ident
from time import perf_counter_ns
from types import FrameType
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from benchprobe.loop import batch_size as batch_sizes
from benchprobe.loop.break_detection import left_on_purpose
from benchprobe.loop.device import MAX_EVENTS_PER_WINDOW, WINDOW_NS, DeviceTimer, no_device
from benchprobe.loop.measurement import MEASURED, STOPPED, LoopMeasurement
from benchprobe.loop.probe import Given, Probe
from benchprobe.stream.columns import complete_steps, step_times
from benchprobe.stream.events import Chunk
from benchprobe.stream.values import settle, whole_characters

CHUNK_NS = 50_000_000  # a chunk ends with the first step that ends after this;
TARGET_NS = CHUNK_NS // 2  # its step budget should fit into this, so that its length is known without counting
FIRST_STEPS = 16
MAX_STEPS = 1 << 14

BatchSize = Union[None, int, Callable[[Any], Any]]  # as a user gives it


class StepTimes(SequenceABC):  # type: ignore[type-arg]
    """The step times of a chunk, computed only if a rule reads them: most just count."""

    def __init__(self, chunk: Chunk, count: int) -> None:
        self._chunk = chunk
        self._count = count
        self._times: Optional[List[int]] = chunk.device_ns

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        if self._times is None:
            self._times = step_times(self._chunk.entries, self._chunk.ask)
        return self._times[index]


class LoopPass:
    """From the first step of a loop to its last. `append` takes stamps and given values; `budget` is the number of steps of
    the open chunk, `due` the time after which the next step end closes it."""

    def __init__(self, probe: Probe, name: str, batch_size: BatchSize, iterable: Any = None, unit: Any = None) -> None:
        self.name = whole_characters(name if type(name) is str else str(name))
        self.chunk: Optional[Chunk] = None
        self.measurement: Optional[LoopMeasurement] = None
        self.append: Callable[[Given], None] = probe.outside.append
        self.budget = FIRST_STEPS
        self.stride = 0  # how many steps share an event of the device; 0: there is no device
        self.due = 0
        self.size_of: Optional[batch_sizes.BatchSize] = None
        self.append_size: Callable[[Optional[int]], None] = lambda size: None
        self.exhausted = False
        self.broken_off = False  # its last step was left by `break` or `return`
        self.thread = 0
        self._probe = probe
        self._total = _length(iterable)
        self._find_device = probe.find_device
        self._timer: Optional[DeviceTimer] = None
        self._passed = 0  # steps of this pass
        self._before = 0  # steps of earlier passes in the same measurement
        self._pace = FIRST_STEPS
        self._deferred: List[Dict[str, Any]] = []
        self._detached = self._closed = False
        self._parent: Any = probe.outside
        self._number = 0
        self._unit = None if unit is None else whole_characters(str(unit)).strip().removesuffix("/s")
        batch_size = _plain(batch_size)
        self._batch_size = batch_sizes.given_once(batch_size, lambda text: probe.complain("iterate", self.name, text))
        self._size_finder = self._choose_finder(batch_size, batch_sizes.of_loader(iterable))
        self._first_size: Optional[int] = None

    def open(self) -> None:
        """The loop begins, in the context of its body."""
        probe = self._probe
        self.thread = get_ident()
        self._parent = probe.current.get()
        self.measurement = probe.enter(self)
        if self.measurement is not None:
            self._number, self._before = self.measurement.loop, self.measurement.steps
        else:
            self._number = probe.next_number()
        self.announce()
        probe.current.set(self)
        try:
            if self.measurement is not None:
                self.measurement.begin(perf_counter_ns(), self._total)
            self._open_chunk()
        except Exception as error:
            self._break_down(error)
            self._open_chunk()

    def announce(self) -> None:
        about = {"name": self.name, "total": self._total, "parent": getattr(self._parent, "_number", None)}
        about.update(batch_size=self._batch_size, counts=self.measurement is not None, unit=self._unit)
        self._probe.writer.emit({"event": "loop", "t": perf_counter_ns(), "loop": self._number, **about})

    def turn_over(self, now: int, count: Optional[int]) -> bool:
        """Closes the chunk of `count` steps (None: to be counted), the last of which ended at `now`, and opens the next.
        False: the loop must end."""
        try:
            self._close_chunk(now, count)
            if self.measurement is not None and not self.exhausted:
                self.measurement.keep_to_agreement()
            if self.exhausted or self.stopped:
                return False
            self._open_chunk()
        except Exception as error:  # our fault, which must not become the program's
            self._break_down(error)
            self._open_chunk()
        return True

    @property
    def stopped(self) -> bool:
        return self.measurement is not None and self.measurement.phase == STOPPED

    @property
    def is_plain(self) -> bool:
        """Nothing but stamps is taken of the steps of this chunk."""
        return self.size_of is None and self._timer is None

    def mark_device(self) -> None:
        """`stride` more steps have been handed over to the device, if there is one."""
        if self._timer is not None:
            try:
                self._timer.mark()
            except Exception as error:
                self._lose_device(error)

    def defer(self, values: Dict[str, Any]) -> None:
        if self.chunk is None:
            self._parent.defer(values)
            return
        self.chunk.hold = True
        self._deferred.append(values)

    def interrupted(self, now: int, frame: Optional[FrameType]) -> None:
        """The loop of `frame` was left in the middle of a step, which counts if that was on purpose."""
        if left_on_purpose(frame):
            self.append(now)
            self.broken_off = True

    def close(self) -> None:
        """The loop has ended, in whatever way, or the interpreter does."""
        if self._closed:
            return
        self._closed = True
        try:
            if self.chunk is not None:
                self._close_chunk(perf_counter_ns(), None)
        except Exception as error:
            self._break_down(error)
        # Tasks and threads begun in the loop may outlive it, and then give to whatever is around it.
        self.append = lambda given: self._parent.append(given)
        if self._probe.current.get() is self:
            self._probe.current.set(self._parent)
        if not self._detached:
            how = "break" if self.broken_off else "exhausted" if self.exhausted else "left"
            about = {"steps": self._before + self._passed, "how": "stopped" if self.stopped else how}
            self._probe.writer.emit({"event": "loop_end", "t": perf_counter_ns(), "loop": self._number, **about})
        self._probe.leave(self)

    def detach(self) -> None:
        if self._timer is not None:  # torch aborts a forked child that frees its parent's events, so it never does
            import ctypes

            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._timer))
        self._detached = True
        self.measurement = self._timer = self.chunk = None
        self._deferred = []
        self.append = self._give_outside

    def _open_chunk(self) -> None:
        if self._detached:
            self.budget, self.due, self.size_of = MAX_STEPS, 1 << 63, None
            return
        self._begin_window()
        length_ns, budget = CHUNK_NS, self._pace
        if self._timer is not None:
            length_ns, budget = WINDOW_NS, min(MAX_EVENTS_PER_WINDOW * self.stride, MAX_STEPS)
        phase, deadline = MEASURED, None
        if self.measurement is not None:
            phase, deadline = self.measurement.phase, self.measurement.deadline_ns()
            budget = min(budget, self.measurement.budget())
        self.size_of = self._size_finder
        if self._batch_size is not None:
            budget = self._look_at_first_and_last(budget)
        self.budget = budget
        ask = perf_counter_ns()
        self.due = ask + length_ns if deadline is None else min(ask + length_ns, deadline)
        chunk = Chunk(self._number, self._before + self._passed, phase, ask, self._batch_size)
        chunk.hold = self._timer is not None
        self.append = chunk.entries.append
        self.append_size = chunk.sizes.append
        self.chunk = chunk

    def _close_chunk(self, now: int, count: Optional[int]) -> None:
        chunk = self.chunk
        if chunk is None or self._detached:
            return
        count = complete_steps(chunk.entries) if count is None else count
        if self._timer is not None and count:
            now = self._finish_window(chunk, now, count)
        if self._deferred:
            deferred, self._deferred = self._deferred, []
            settle(deferred, self._probe.complain_about_value)
        self.chunk = None
        chunk.closed = True
        self._probe.writer.hand_over(chunk)
        self._passed += count
        if chunk.sizes and self._batch_size is not None:
            self._compare_sizes(chunk.sizes)
        if count:
            self._pace = max(1, min(count * TARGET_NS // max(now - chunk.ask, 1), 4 * self._pace, MAX_STEPS))
            if self.measurement is not None:
                self.measurement.add(StepTimes(chunk, count), now)

    def _begin_window(self) -> None:
        try:
            if self._timer is None:
                self._timer = self._find_device()
            if self._timer is not None:
                self.stride = self._timer.begin(self._probe.step_ns.get(self.name, 0))
        except Exception as error:
            self._lose_device(error)

    def _finish_window(self, chunk: Chunk, now: int, count: int) -> int:
        assert self._timer is not None
        try:
            device_ns = self._timer.finish(count)
        except Exception as error:
            self._lose_device(error)
            return now
        now = perf_counter_ns()
        if len(device_ns) == count:
            chunk.device_ns, chunk.window_ns, chunk.device_stride = device_ns, now - chunk.ask, self.stride
            self._probe.step_ns[self.name] = chunk.window_ns / count
        return now

    def _lose_device(self, error: Exception) -> None:
        self._timer, self.stride = None, 0
        self._find_device = no_device
        reason = f"{type(error).__name__}: {error}"
        self._probe.message("device", f"{reason}; from here on steps are timed by the host's clock")

    def _choose_finder(self, batch_size: BatchSize, loaded: Optional[int]) -> Optional[batch_sizes.BatchSize]:
        if type(batch_size) is int:
            return None
        complain = self._probe.complain
        if callable(batch_size):
            return batch_sizes.guarded(batch_size, lambda text: complain("iterate", self.name, text))
        if batch_size is not None:
            text = f"loop '{self.name}': batch_size {batch_size!r:.40} is not an integer and was ignored"
            complain("iterate", f"{self.name} batch_size", text)
        if self._unit is not None:
            text = f"loop '{self.name}': {self._unit} are counted by the size of each batch; give batch_size if it has more"
            complain("iterate", f"{self.name} unit", text, "info")
        doubt = f"{self.name} items"
        return batch_sizes.finder(loaded, lambda text: complain("iterate", doubt, f"loop '{self.name}': {text}"))

    def _look_at_first_and_last(self, budget: int) -> int:
        """Checks a given batch size on the first batch and, if the length is known, on the last, each in its own chunk.
        Returns the budget of the next chunk."""
        left = None
        if self._first_size == self._batch_size and self._total is not None:
            left = self._total - 1 - self._passed  # before the last
        if self._passed == 0 or left == 0:
            self.size_of = batch_sizes.find
            return 1
        return min(budget, left) if left is not None and left > 0 else budget

    def _compare_sizes(self, sizes: Sequence[Optional[int]]) -> None:
        size = sizes[0]
        if self._first_size is None:
            self._first_size = size
        elif size is not None and size != self._batch_size:
            text = f"the last batch has {size} items, not {self._batch_size}, so the rate is too high"
            remedy = "leave batch_size out, or give a function of the batch"
            self._probe.complain("iterate", f"{self.name} batch_size", f"loop '{self.name}': {text}; {remedy}")

    def _break_down(self, error: Exception) -> None:
        self.measurement = self._timer = self.chunk = None
        self._find_device = no_device
        self._probe.message("benchprobe", f"loop '{self.name}': {type(error).__name__}: {error}", "error")

    def _give_outside(self, given: Union[Given, int]) -> None:
        if type(given) is not int:  # a stamp: this loop is recorded no more
            self._probe.outside.append(given)


def _plain(batch_size: Any) -> Any:
    """Integers of numpy and the like as Python's own; anything else unchanged."""
    try:
        return index(batch_size)
    except Exception:  # not an integer
        return batch_size


def _length(iterable: Any) -> Optional[int]:
    try:
        return len(iterable)
    except Exception:  # no length, or not yet
        return None
