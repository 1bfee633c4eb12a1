"""The measured program's process: when it was executed, when and how it ended, and what it used.

Its time runs from exec to exit. The clock is read as soon as the program ends, whatever the supervisor is doing.
"""

from __future__ import annotations

import _thread
import os
import resource
import signal
import time

from benchwright.agent.processes.process_tree import LINUX, ProcessStat, read_proc, read_stat
from benchwright.agent.samplers.base import SampledJob
from benchwright.agent.supervise.spawn import ColdStart, Started, read_scheduled

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchwright.core.job import Job


# How long the threads and processes of a program waited for a core, by looks at them while they live.
#
# The kernel counts that for each of them, and forgets it when their parent reaps them: only of the program's first thread is
# the last figure known. Looks are the closer together the shorter the program has run, so that little is missed of any length;
# on a quiet machine, and of a program that is one thread, there are few.


_LEAST_NS = 2_000_000  # between two looks
_SELDOM, _OFTEN = 0.1, 0.02  # of the time that it has run
_MOST_COST = 1 / 30  # of a core
_MOST_TASKS = 32  # of more, some wait at the same time
_NOTICED_NS = 1_000_000  # less is how long an idle core takes to wake up

Task = tuple[int, int]  # process, thread


class TaskWaits:
    """Of the program that process `pid` has been since `began_ns`."""

    def __init__(self, pid: int, began_ns: int) -> None:
        self._pid = pid
        self._began_ns = began_ns
        self._tasks: dict[Task, tuple[int, int]] = {}  # ns it ran, ns it waited for a core
        self._looks = self._together = 0  # at which any, and at which several were ready to run
        self.due_ns: int | None = began_ns if LINUX else None  # None: nothing can be seen

    def look(self, now_ns: int) -> None:
        """If it is time."""
        if self.due_ns is None or now_ns < self.due_ns:
            return
        before_ns = time.thread_time_ns()
        ready = self._read()
        if ready is None or len(self._tasks) > _MOST_TASKS:
            self.due_ns = None
            return
        self._looks += ready > 0
        self._together += ready > 1
        waits = len(self._tasks) > 1 and sum(waited for _, waited in self._tasks.values()) >= _NOTICED_NS
        apart = (_OFTEN if waits else _SELDOM) * (now_ns - self._began_ns)
        cost_ns = time.thread_time_ns() - before_ns
        self.due_ns = now_ns + int(max(_LEAST_NS, apart, cost_ns / _MOST_COST))

    def seen(self, first: tuple[int, int]) -> tuple[int, int, float] | None:
        """Nanoseconds they all ran and waited for a core, and at what share of the looks several of them were ready to run.

        `first`: what the kernel counted of the first thread until its end. None if no other was seen, or too many were.
        """
        tasks = self._tasks | {(self._pid, self._pid): first}
        if len(tasks) < 2 or not self._looks or self.due_ns is None:
            return None
        ran_ns, waited_ns = (sum(times) for times in zip(*tasks.values(), strict=True))
        return ran_ns, waited_ns, self._together / self._looks

    def _read(self) -> int | None:
        """How many are ready to run, or running, now; None if the kernel lists no children."""
        ready, processes = 0, [self._pid]
        while processes:
            pid = processes.pop()
            process = read_stat(pid)
            if process is None:
                continue
            for task in _threads(process):
                folder = f"/proc/{pid}/task/{task}"
                state = process.state if task == pid and process.threads == 1 else _state(folder)
                ready += state == "R"
                counts = (read_proc(f"{folder}/schedstat") or b"").split()
                if len(counts) == 3:
                    self._tasks[pid, task] = int(counts[0]), int(counts[1])
                children = read_proc(f"{folder}/children")
                if children is None and pid == self._pid and not process.ended:
                    return None
                processes += [int(child) for child in (children or b"").split()]
        return ready


def _threads(process: ProcessStat) -> list[int]:
    if process.threads <= 1:
        return [process.pid]
    try:
        return [int(name) for name in os.listdir(f"/proc/{process.pid}/task")]
    except OSError:
        return []


def _state(folder: str) -> str:
    data = read_proc(f"{folder}/stat")
    return data[data.rindex(b")") + 2 :][:1].decode() if data else ""


_NS = 1_000_000_000
_HAS_WAITID = hasattr(os, "waitid")


class Program:
    """`on_end` is called at the moment of its end, from a thread or a signal handler."""

    def __init__(self, on_end: Callable[[], None], start: ColdStart) -> None:
        self._on_end = on_end
        self._start = start
        self._used_before = resource.getrusage(resource.RUSAGE_CHILDREN)  # by programs before this one
        self._our_cpu_ns = 0  # used by its process before exec
        self._fork_rss_bytes = 0
        self._wait_status: int | None = None
        self._scheduled: tuple[int, int] | None = None  # how long its first thread ran and waited, before exec too
        self._waited_before_ns: int | None = None
        self._late_ns = 0  # how long we waited for a core after its end; a part of its time, too
        self.waits: TaskWaits | None = None  # of all its threads and processes
        self.pid: int | None = None
        self.began_ns = time.perf_counter_ns()
        self.ended_ns: int | None = None
        self.stopped_ns: int | None = None  # since when a signal has it stopped
        self.is_held = False  # by its supervisor: that is no stop
        self.stops: list[tuple[int, int]] = []  # finished ones: since when, for how long
        self.max_rss_bytes = 0  # of one process, its descendants included

    def start(
        self,
        job: Job,
        environment: Mapping[str, str],
        log_fd: int,
        data_fd: int | None,
        stopped: Callable[[], bool],
    ) -> Started:
        """Raises CannotStart. `stopped`: whether we are asked to stop."""
        try:
            started = self._start.spawn(job, environment, log_fd, data_fd, forked=self._await_end, stopped=stopped)
        except BaseException:
            self.pid = None
            raise
        self.began_ns, self._our_cpu_ns = started.began_ns, started.our_cpu_ns
        self._fork_rss_bytes, self._waited_before_ns = started.fork_rss_bytes, started.waited_ns
        self.waits = TaskWaits(started.pid, started.began_ns)
        return started

    def _await_end(self, pid: int) -> None:
        """In its own thread, since reading the memory map of a large process blocks the main one in the kernel. If a long
        match in the log keeps that thread from running, the signal interrupts the match (`on_signal`)."""
        self.pid = pid
        if _HAS_WAITID:
            try:
                _thread.start_new_thread(self._watch_for_end, (pid,))
            except RuntimeError:
                pass  # no thread available: rely on the signal alone
            self._look_for_end(pid, os.WNOHANG)  # it may have ended before its pid was known here

    def _watch_for_end(self, pid: int) -> None:
        _, before_ns = read_scheduled("thread-self") or (0, 0)
        self._look_for_end(pid, 0)
        _, waited_ns = read_scheduled("thread-self") or (0, 0)
        self._late_ns = waited_ns - before_ns

    def on_signal(self, number: int) -> None:
        """It may have ended, or been stopped or continued."""
        if number == signal.SIGCHLD and _HAS_WAITID and self.pid is not None:
            self._look_for_end(self.pid, os.WNOHANG)
            self._look_for_stop(self.pid)

    def _look_for_end(self, pid: int, flags: int) -> None:
        """Without WNOHANG in `flags`, wait for it."""
        try:
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | flags) is not None:
                self._end(time.perf_counter_ns())
        except ChildProcessError:
            pass  # reaped already

    def _look_for_stop(self, pid: int) -> None:
        try:
            change = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WCONTINUED | os.WNOHANG)
        except ChildProcessError:
            return
        now_ns = time.perf_counter_ns()
        if change is not None and change.si_code == os.CLD_STOPPED:
            self.stopped_ns = None if self.is_held else now_ns
        elif change is not None:
            self._end_stop(now_ns)

    def _end(self, now_ns: int) -> None:
        if self.ended_ns is None:
            self.ended_ns = now_ns
            self._on_end()
            self._end_stop(now_ns)

    def _end_stop(self, now_ns: int) -> None:
        if self.stopped_ns is not None:
            self.stops.append((self.stopped_ns, now_ns - self.stopped_ns))
            self.stopped_ns = None

    def sampled(self, devices: Sequence[str] | None) -> SampledJob:
        """The program as samplers see it."""
        before = self._used_before
        return SampledJob(None, devices, self._start.others, before.ru_utime + before.ru_stime)

    def note_peak(self, usage: resource.struct_rusage) -> None:
        """Of one of its processes, reaped with this usage."""
        self.max_rss_bytes = max(self.max_rss_bytes, usage.ru_maxrss * (1024 if LINUX else 1))

    def discount(self, usage: resource.struct_rusage) -> None:
        """Of a process that is no part of the job, and was reaped with this usage."""
        self._our_cpu_ns += int((usage.ru_utime + usage.ru_stime) * _NS)

    def note_waiting(self) -> None:
        """How long its first thread ran, and waited for a core: the kernel knows it of the shortest program, until it is
        reaped."""
        if self.ended_ns is not None and self._wait_status is None and self._scheduled is None:
            self._scheduled = read_scheduled(self.pid or 0)

    def reap(self, status: int) -> None:
        """It was reaped with this status."""
        self._end(time.perf_counter_ns())
        self._wait_status = status

    @property
    def is_over(self) -> bool:
        return self._wait_status is not None

    @property
    def elapsed_ns(self) -> int:
        """How long it has run, or ran."""
        return (self.ended_ns or time.perf_counter_ns()) - self.began_ns

    @property
    def began_wall(self) -> float:
        """The time of day at which it was executed."""
        return time.time() - (time.perf_counter_ns() - self.began_ns) / _NS

    @property
    def ending(self) -> tuple[int | None, int | None]:
        """Its exit code, or the signal that ended it."""
        if self._wait_status is None:
            return None, None
        code = os.waitstatus_to_exitcode(self._wait_status)
        return (code, None) if code >= 0 else (None, -code)

    @property
    def used(self) -> dict[str, object]:
        """CPU time of the program and all its reaped descendants, and what else the kernel counted of them.

        Our copy before exec adds some page faults to each launch.
        """
        usage, before = resource.getrusage(resource.RUSAGE_CHILDREN), self._used_before
        user_s, system_s = usage.ru_utime - before.ru_utime, usage.ru_stime - before.ru_stime
        major_faults = usage.ru_majflt - before.ru_majflt
        counts = {
            "system_s": system_s,
            "page_faults": usage.ru_minflt - before.ru_minflt + major_faults,
            "major_faults": major_faults,
            "waits": usage.ru_nvcsw - before.ru_nvcsw,
            "preemptions": usage.ru_nivcsw - before.ru_nivcsw,
        }
        if self._scheduled is not None and self._waited_before_ns is not None:
            first = [a - b for a, b in zip(self._scheduled, (self._our_cpu_ns, self._waited_before_ns), strict=True)]
            first_ns = max(0, first[0]), max(0, first[1])
            counts["main_ran_s"], counts["main_waited_s"] = (ns / _NS for ns in first_ns)
            counts["noticed_late_s"] = self._late_ns / _NS
            if self.waits is not None and (seen := self.waits.seen(first_ns)) is not None:
                counts["seen_ran_s"], counts["seen_waited_s"], counts["seen_together"] = (
                    seen[0] / _NS, seen[1] / _NS, round(seen[2], 4),
                )  # fmt: skip
        return {"cpu_s": max(0.0, user_s + system_s - self._our_cpu_ns / _NS), "usage": counts}

    def peak_rss(self, sampled_bytes: int, interval_s: float) -> dict[str, object]:
        """Peak memory: of the tree in a sample, or of one process as the kernel recorded it.

        The kernel's maximum includes the copy of the supervisor before exec. If it is not above that, the program used at
        most this much; that is reported, marked as a bound, if there was no time for two samples.
        """
        if self.pid is None:
            return {"max_rss_bytes": None}
        if self.max_rss_bytes > self._fork_rss_bytes * 1.05:
            return {"max_rss_bytes": max(self.max_rss_bytes, sampled_bytes)}
        if sampled_bytes and self.elapsed_ns >= interval_s * _NS:
            return {"max_rss_bytes": sampled_bytes}
        return {"max_rss_bytes": max(self.max_rss_bytes, sampled_bytes), "max_rss_is_bound": True}
