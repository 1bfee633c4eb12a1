"""The bookkeeping of one pass through a loop, done between its chunks.

A chunk is a series of steps with nothing but time stamps between them. Stop rules, the barrier and the device work between
two chunks; the next one starts with a new stamp, so that time belongs to no step.
"""

from __future__ import annotations

from collections.abc import Sequence as SequenceABC
from itertools import repeat
from operator import index, length_hint
from threading import get_ident
from time import perf_counter_ns
from types import FrameType
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from benchprobe.loop import batch_size as batch_sizes
from benchprobe.loop import device
from benchprobe.loop.break_detection import left_on_purpose
from benchprobe.loop.device import TorchTimer, no_device
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
        self._times: Optional[List[int]] = None

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        chunk = self._chunk
        if self._times is None and chunk.groups is not None:
            ends = [chunk.ask, *(end for _, end, _ in chunk.groups)]
            times = chunk.device_ns or [end - begin for begin, end in zip(ends, ends[1:])]
            self._times = [each for (steps, _, _), ns in zip(chunk.groups, times) for each in device.spread(ns, steps)]
        elif self._times is None:
            self._times = chunk.device_ns or step_times(chunk.entries, chunk.ask)
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
        self.event_interval_ns = 0  # the least time between two events of the device
        self.group = 0  # how many steps share two stamps as well; 0: each has its own
        self.due = 0
        self.size_of: Optional[batch_sizes.BatchSize] = None
        self.append_size: Callable[[Optional[int]], None] = lambda size: None
        self.exhausted = self.over = False
        self.broken_off = False  # its last step was left by `break` or `return`
        self.thread = 0
        self._probe = probe
        self._total = _length(iterable)
        self._find_device = probe.find_device
        self._timer: Optional[TorchTimer] = None
        self._may_group = False
        self._again = self.name in probe.step_ns
        self._ticks: Iterator[Any] = iter(())  # one fewer with each step of the open group that begins
        self._grouped = 0  # steps of the open chunk in groups that have ended
        self._group_steps = self._group_ticks = self._group_wait_ns = 0
        self._passed = 0  # steps of this pass
        self._before = 0  # steps of earlier passes in the same measurement
        self._pace = FIRST_STEPS
        self._lead_ns = 0  # of the open chunk: its first step began that much before its first event
        self._deferred: List[Dict[str, Any]] = []
        self._detached = self._closed = False
        self._parent: Any = probe.outside
        self._number = 0
        self._unit = None if unit is None else whole_characters(str(unit)).strip().removesuffix("/s")
        batch_size = _plain(batch_size)
        self._batch_size = batch_sizes.given_once(batch_size, lambda text: probe.complain("iterate", self.name, text))
        self._size_finder = self._choose_finder(batch_size, batch_sizes.of_loader(iterable))
        self._first_size: Optional[int] = None

    def open(self, may_group: bool = False) -> None:
        """The loop begins, in the context of its body. `may_group`: it can hand out steps in groups."""
        self._may_group = may_group and self._probe.writer.takes_long_lines
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
        False: the loop is over."""
        try:
            self._close_chunk(now, count)
            if self.measurement is not None and not self.exhausted:
                self.measurement.keep_to_agreement()
            if self.exhausted or self.stopped:
                self.over = True
                return False
            self._open_chunk()
        except Exception as error:  # our fault, which must not become the program's
            self._break_down(error)
            self._open_chunk()
        return True

    def begin_earlier(self, lead_ns: int) -> None:
        """The step that begins with the open chunk began that much earlier."""
        if self.chunk is not None and not self.chunk.entries and lead_ns > 0:
            self.chunk.ask -= lead_ns
            self.chunk.last_end = self.chunk.ask
            self._lead_ns = lead_ns

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

    def begin_group(self, wait_ns: int, counted: Optional[Iterator[Any]] = None) -> Tuple[int, Iterator[Any]]:
        """Its first step begins, which waited that long for its data. Returns how many others it has, and what these must use
        up, one each: `counted`, the batches themselves, if they tell how many are left."""
        self._group_steps = min(self.group, self.budget - self._grouped)
        self._group_wait_ns = wait_ns
        self._ticks = repeat(True, self._group_steps - 1) if counted is None else counted
        self._group_ticks = length_hint(self._ticks)
        return self._group_steps - 1, self._ticks

    @property
    def _begun(self) -> int:
        """How many steps of the open group have begun."""
        return 1 + self._group_ticks - length_hint(self._ticks)

    def end_group(self, unfinished: int = 0) -> bool:
        """All of its steps have ended, or its last has not. False: so has the chunk."""
        if not unfinished:
            self.mark_device()
        now = perf_counter_ns()
        steps = self._begun - unfinished
        if self.chunk is not None and self.chunk.groups is not None and steps:
            self.chunk.groups.append((steps, now, self._group_wait_ns))
        self._grouped += steps
        self._group_steps = 0
        return steps == self.group and self._grouped < self.budget and now < self.due

    def _place(self, given: Any) -> None:
        """Takes what the present step of a group gave."""
        if self.chunk is not None:
            self.chunk.entries.append((self._grouped + self._begun - 1, given))

    def defer(self, values: Dict[str, Any]) -> None:
        if self.chunk is None:
            self._parent.defer(values)
            return
        self.chunk.hold = True
        self._deferred.append(values)

    def interrupted(self, now: int, frame: Optional[FrameType]) -> None:
        """The loop of `frame` was left in the middle of a step, which counts if that was on purpose."""
        self.broken_off = left_on_purpose(frame)
        if self.group:
            self.end_group(unfinished=int(not self.broken_off))
        elif self.broken_off:
            self.append(now)

    def close(self) -> None:
        """The loop has ended, in whatever way, or the interpreter does."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._group_steps:
                self.end_group(unfinished=1)
            if self.chunk is not None:
                self._close_chunk(perf_counter_ns(), None)
        except Exception as error:
            self._break_down(error)
        if self._timer is not None:  # its events serve the next pass
            self._probe.spare_timers.append(self._timer)
            self._timer = None
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
        if self._timer is not None:
            device.never_free(self._timer)
        self._detached = True
        self.measurement = self._timer = self.chunk = None
        self._deferred = []
        self.append = self._give_outside

    def _open_chunk(self) -> None:
        if self._detached:
            self.budget, self.due, self.size_of, self.group = MAX_STEPS, 1 << 63, None, 0
            return
        self._begin_window()
        length_ns, budget = CHUNK_NS, self._pace
        if self._timer is not None:
            length_ns = device.WINDOW_NS
            budget = min(device.MAX_EVENTS_PER_WINDOW * self.stride, device.MAX_STEPS_PER_WINDOW)
        phase, deadline = MEASURED, None
        if self.measurement is not None:
            phase, deadline = self.measurement.phase, self.measurement.deadline_ns()
            budget = min(budget, self.measurement.budget())
        self.size_of = self._size_finder
        short = 0 < self._probe.step_ns.get(self.name, 0) < device.STAMPED_FROM_NS
        if self._batch_size is not None and not self._again:  # each such chunk drains the device
            budget = self._look_at_first_and_last(budget)
        self.budget = budget
        ask = perf_counter_ns()
        self.due = ask + length_ns if deadline is None else min(ask + length_ns, deadline)
        chunk = Chunk(self._number, self._before + self._passed, phase, ask, self._batch_size)
        chunk.hold = self._timer is not None
        self.group = self.stride if self._may_group and short and self.size_of is None else 0
        self._grouped = self._lead_ns = 0
        self.append = chunk.entries.append
        if self.group:
            chunk.groups, self.append = [], self._place
        self.append_size = chunk.sizes.append
        self.chunk = chunk

    def _close_chunk(self, now: int, count: Optional[int]) -> None:
        chunk = self.chunk
        if chunk is None or self._detached:
            return
        if chunk.groups is not None:
            count = self._grouped
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
                spare = self._probe.spare_timers if self._find_device is not no_device else None
                self._timer = spare.pop() if spare else self._find_device()
            if self._timer is not None:
                self.stride = self._timer.begin(self._probe.step_ns.get(self.name, 0), self.event_interval_ns)
        except Exception as error:
            self._lose_device(error)

    def _finish_window(self, chunk: Chunk, now: int, count: int) -> int:
        assert self._timer is not None
        try:
            self._timer.wait(count)
            now = perf_counter_ns()
            times = self._timer.read()
            times[:1] = [first + self._lead_ns for first in times[:1]]
        except Exception as error:
            self._lose_device(error)
            return now
        shares = [self.stride] * (count // self.stride) + [count % self.stride] * (count % self.stride > 0)
        if len(times) == len(shares):
            spread = times if self.group else [each for pair in zip(times, shares) for each in device.spread(*pair)]
            chunk.device_ns, chunk.window_ns, chunk.device_stride = spread, now - chunk.ask, self.stride
            if count > 1 or self.name not in self._probe.step_ns:  # one step is mostly waiting for it
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
