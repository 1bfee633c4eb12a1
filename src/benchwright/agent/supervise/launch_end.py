"""Ends the processes of a launch together once the reporting ones have been stopped early.

Where only some processes of a launch report, such as the first of two machines under torchrun, only these know when they
have been measured enough. The others would wait for them in a collective, and a launcher for its peers, for minutes.
"""

from __future__ import annotations

import os
import re
import signal
import time

from benchwright.agent.processes.process_tree import read_proc, signal_descendants
from benchwright.agent.supervise.barrier import create_mark

TYPE_CHECKING = False

if TYPE_CHECKING:
    from benchwright.core.job import Job


_NS = 1_000_000_000
_LOOK_NS = _NS // 2
_LAST_LOOKS = 4
_DONE, _GONE = "done-", "gone-"
_LOOP_END, _STOPPED = b'"event":"loop_end"', b'"how":"stopped"'  # as benchprobe writes them


class LaunchEndWatch:
    """One job's part in it. Jobs without a `launch_end` are never due."""

    def __init__(self, job: Job) -> None:
        self._end = job.launch_end
        self._stream = job.stream
        self._grace_ns = int(job.grace_s * _NS)
        self._read = 0  # bytes of the stream
        self._is_done = self._end is None or not self._end.reports
        self._next_ns = 0
        self._deadline_ns: int | None = None  # known once all that report are done
        self._is_shortened = False

    @property
    def next_ns(self) -> int | None:
        """When to look again."""
        return None if self._end is None else self._next_ns

    def say_done(self) -> None:
        """This job's program has been measured enough."""
        self._is_done = True
        self._mark(_DONE)

    def say_gone(self) -> None:
        """This job's program has ended."""
        self._look(self._next_ns)
        self._mark(_GONE)

    def is_due(self, now_ns: int) -> bool:
        """Whether the job is to be ended now, since its launch has been measured and others have ended or time is up."""
        if self._end is None:
            return False
        if now_ns >= self._next_ns:
            self._next_ns = now_ns + _LOOK_NS
            self._look(now_ns)
        return self._deadline_ns is not None and now_ns >= self._deadline_ns

    def was_measured(self) -> bool:
        """Whether every process that reports was stopped early; others may be about to say so."""
        for _ in range(_LAST_LOOKS if self._end is not None else 0):
            self._look(self._next_ns)
            if self._deadline_ns is not None:
                return True
            time.sleep(_LOOK_NS / _NS)
        return False

    def _look(self, now_ns: int) -> None:
        end = self._end
        if end is None:
            return
        if not self._is_done and self._was_stopped():
            self.say_done()
        try:
            names = os.listdir(end.folder)
        except OSError:
            return
        if self._deadline_ns is None and sum(name.startswith(_DONE) for name in names) >= end.size:
            self._deadline_ns = now_ns + int(end.grace_s * _NS)
        if self._deadline_ns is not None and not self._is_shortened and any(n.startswith(_GONE) for n in names):
            self._is_shortened = True
            self._deadline_ns = min(self._deadline_ns, now_ns + self._grace_ns)

    def _was_stopped(self) -> bool:
        """Whether the program's stream tells, since the last look, of a loop that was stopped early."""
        try:
            with open(self._stream, "rb") as file:
                file.seek(self._read)
                new = file.read()
        except OSError:
            return False
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        return any(_LOOP_END in line and _STOPPED in line for line in whole.splitlines())

    def _mark(self, what: str) -> None:
        if self._end is not None:
            create_mark(self._end.folder, f"{what}{self._end.place}")


# Whether a program ended for lack of memory or disk space.


# Compiled only if a program fails: starting the agent must stay cheap.
_SIGNS = (
    rb"CUDA out of memory|CUDA error: out of memory|torch(?:\.cuda)?\.OutOfMemoryError|HIP out of memory"
    rb"|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|CUBLAS_STATUS_ALLOC_FAILED|RESOURCE_EXHAUSTED: Out of memory"
    rb"|(?:^|\n)MemoryError\b|numpy\.[\w.]*_ArrayMemoryError|std::bad_alloc|Cannot allocate memory|can't allocate memory"
    rb"|java\.lang\.OutOfMemoryError|runtime: out of memory"
)

_DISK_SIGNS = rb"No space left on device|\bENOSPC\b|[Dd]isk quota exceeded|\bEDQUOT\b"
_FULL_BYTES = 4096  # less than this is free: not even a line can be written


class OomKills:
    """How often the kernel killed for memory: in our control group (None: not reported), and on the machine."""

    __slots__ = ("group", "machine")

    def __init__(self, group: int | None, machine: int | None) -> None:
        self.group = group
        self.machine = machine


def ran_out_of_memory(
    *,
    exit_code: int | None,
    signal_number: int | None,
    killed_by_us: bool,
    before: OomKills,
    after: OomKills,
    log_end: bytes,
) -> bool:
    """Whether the program ran out of memory, as far as is visible from outside."""
    if exit_code == 0 or killed_by_us:
        return False
    if exit_code is None and signal_number is None:
        return False  # it never ran
    if before.group is not None and after.group is not None:
        if after.group > before.group:
            return True
    elif signal_number == signal.SIGKILL and (after.machine or 0) > (before.machine or 0):
        # The machine's counter includes others, so it counts only together with a kill that we did not send.
        return True
    return re.search(_SIGNS, log_end) is not None


def ran_out_of_disk(*, failed: bool, log_end: bytes, log: str) -> bool:
    """Whether it failed for lack of disk space, or its log may be cut off because the disk is full."""
    if failed and re.search(_DISK_SIGNS, log_end) is not None:
        return True
    try:
        disk = os.statvfs(os.path.dirname(log) or ".")
    except OSError:
        return False
    # Only root may use the reserved blocks.
    free = disk.f_bfree if os.geteuid() == 0 else disk.f_bavail
    return disk.f_blocks > 0 and free * disk.f_frsize < _FULL_BYTES


def read_oom_kills() -> OomKills:
    """The counters now."""
    return OomKills(_group_counter(), _counter("/proc/vmstat"))


def _group_counter() -> int | None:
    for line in (read_proc("/proc/self/cgroup") or b"").decode(errors="replace").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            found = _counter(f"/sys/fs/cgroup{path.rstrip('/')}/memory.events")
        elif "memory" in controllers.split(","):
            found = _counter(f"/sys/fs/cgroup/memory{path.rstrip('/')}/memory.oom_control")
        else:
            continue
        if found is not None:
            return found
    return None


def _counter(path: str) -> int | None:
    match = re.search(rb"^oom_kill (\d+)", read_proc(path) or b"", re.MULTILINE)
    return int(match[1]) if match else None


def leftovers_text(asked: int, killed: int) -> str:
    """About processes that the program left running: how many were terminated, and how many of them killed."""
    text = f"the program ended, but {asked} process(es) it had started were still running and were terminated"
    return f"{text}, {killed} of them with SIGKILL" if killed else text


def late_output_text(late_bytes: int) -> str:
    return (
        f"{late_bytes} bytes of output came from a process that outlived the program, and were ignored; "
        "have the program wait for its children"
    )


# Ends a job's processes: TERM, and KILL after a grace period, until none is left.


_NS = 1_000_000_000


class Takedown:
    """Ends all descendants of this process. Call `advance` until no child is left."""

    def __init__(
        self, grace_s: float, now_ns: int, *, wait_s: float = 0.0, spare: frozenset[int] = frozenset()
    ) -> None:
        """`wait_s`: how long they may take to end by themselves. `spare`: children that are no part of the job."""
        self._spare = spare
        self._grace_ns = int(grace_s * _NS)
        self._ask_ns = now_ns + int(wait_s * _NS)
        self._kill_ns: int | None = None
        self.began_ns = now_ns
        self.asked: set[int] = set()  # pids that were sent TERM
        self.killed: set[int] = set()  # pids that were sent KILL

    def hurry(self) -> None:
        """The grace period is over."""
        self._grace_ns = 0
        self._ask_ns = 0
        if self._kill_ns is not None:
            self._kill_ns = 0

    def advance(self, now_ns: int) -> None:
        """Send what is due now."""
        if self._kill_ns is None:
            if now_ns < self._ask_ns:
                return
            self.asked.update(stat.pid for stat in signal_descendants(os.getpid(), signal.SIGTERM, self._spare))
            # A stopped process handles TERM only once it is continued.
            signal_descendants(os.getpid(), signal.SIGCONT, self._spare)
            self._kill_ns = now_ns + self._grace_ns
        if now_ns >= self._kill_ns:
            self.killed.update(stat.pid for stat in signal_descendants(os.getpid(), signal.SIGKILL, self._spare))

    @property
    def next_ns(self) -> int:
        """When the next signal is due."""
        return self._ask_ns if self._kill_ns is None else self._kill_ns
