"""Detects pauses: the machine suspended, its container frozen, the supervisor stopped.

A clock that runs on makes the program look slow; one that stops hides that caches and frequencies have changed. Either way
a reader of the numbers has to know.
"""

from __future__ import annotations

import time

from benchwright.agent.processes.process_tree import PAGE_BYTES
from benchwright.agent.samplers.process import read_pss_and_rss_bytes

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchwright.agent.samplers.base import SampledJob
    from benchwright.agent.stream import StreamWriter
    from benchwright.agent.supervise.program import Program


SUPERVISOR, MACHINE = "supervisor", "machine"
_LATE_NS = 1_000_000_000  # a busy machine delays a process that slept, but not for this long
_SUSPENDED_NS = 10_000_000


class Pauses:
    """Compares the clocks, from the start of the program on."""

    def __init__(self) -> None:
        self.begin_again()
        self._asleep = _suspended_so_far_ns()

    def begin_again(self) -> None:
        """Forget the time since the last look: a driver kept us waiting, for example while loading."""
        self._last_ns = time.perf_counter_ns()
        self._last_cpu_ns = time.process_time_ns()

    def since_last(self, waited_s: float) -> list[tuple[str, int, int]]:
        """Pauses since the last call: of what, since when, and for how many nanoseconds. `waited_s`: how long we meant to wait;
        time beyond that and our own CPU time is a pause."""
        now_ns, cpu_ns = time.perf_counter_ns(), time.process_time_ns()
        late_ns = now_ns - self._last_ns - (cpu_ns - self._last_cpu_ns) - int(waited_s * 1e9)
        found = []
        if late_ns > _LATE_NS:
            found.append((SUPERVISOR, now_ns - late_ns, late_ns))
        self.begin_again()
        before, self._asleep = self._asleep, _suspended_so_far_ns()
        if self._asleep[0] - before[1] > _SUSPENDED_NS:
            found.append((MACHINE, now_ns, self._asleep[0] - before[1]))
        return found


class PauseWatch:
    """Writes pauses into the stream, and those of the program itself. `continued`: how often this process was stopped and
    continued so far."""

    def __init__(self, stream: StreamWriter, program: Program, continued: Callable[[], int]) -> None:
        self._stream = stream
        self._program = program
        self._continued = continued
        self._continued_before = 0  # until the last look
        self._pauses: Pauses | None = None

    def begin(self) -> None:
        self._pauses = Pauses()

    def begin_again(self) -> None:
        """Forget the time since the last look, unless this process was stopped meanwhile."""
        if self._pauses is not None and self._continued() == self._continued_before:
            self._pauses.begin_again()

    def look(self, waited_s: float) -> None:
        """`waited_s`: how long this process meant to wait since the last look."""
        if self._pauses is None:
            return
        if self._continued() > self._continued_before:
            waited_s = 0.0  # part of it we were stopped, not waiting
        self._continued_before = self._continued()
        found = self._pauses.since_last(waited_s)
        while self._program.stops:
            found.append(("program", *self._program.stops.pop(0)))
        for what, since_ns, paused_ns in found:
            self._stream.append("pause", t=since_ns, what=what, ns=paused_ns)


def _suspended_so_far_ns() -> tuple[int, int]:
    """How long this machine has been suspended since boot, at least and at most; 0 if the system does not report it.

    Two clocks cannot be read at the same instant: this process may lose its core in between.
    """
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return 0, 0
    before_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    running_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return running_ns - time.clock_gettime_ns(time.CLOCK_MONOTONIC), running_ns - before_ns


# Ends a job that uses more memory than it may: all its processes together, memory they share counted once.


_EVERY_NS = 100_000_000


class JobMemoryLimit:
    """`limit_bytes` None: there is none."""

    def __init__(self, limit_bytes: int | None, subject: SampledJob) -> None:
        self._limit_bytes = limit_bytes
        self._subject = subject
        self.due_ns: int | None = None if limit_bytes is None else 0  # when to look next

    def why_exceeded(self, now_ns: int) -> str | None:
        """A sentence if the job uses more than it may; None otherwise, or if it is too early to look again."""
        if self._limit_bytes is None or self.due_ns is None or now_ns < self.due_ns:
            return None
        self.due_ns = now_ns + _EVERY_NS
        self._subject.begin_round()
        living = [stat for stat in self._subject.processes() if not stat.ended]
        # RSS is cheap to read and at least as large, so the true sum is needed only beyond the limit.
        if sum(stat.rss_pages for stat in living) * PAGE_BYTES <= self._limit_bytes:
            return None
        used = sum((read_pss_and_rss_bytes(stat.pid) or (stat.rss_pages * PAGE_BYTES, 0))[0] for stat in living)
        if used <= self._limit_bytes:
            return None
        return (
            f"used {_gib(used)}, more than --max-memory {_gib(self._limit_bytes)}; give it more, or leave this one out"
        )


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.3g} GiB" if size >= 1 << 30 else f"{size / (1 << 20):.3g} MiB"
