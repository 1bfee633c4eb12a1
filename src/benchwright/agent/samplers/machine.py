"""How busy the rest of the machine is: load, other programs, steal, and how long the job waited for a core."""

from __future__ import annotations

import os
import resource

from benchwright.agent.machine.control_group import read_cpu_quota, read_throttled_s
from benchwright.agent.processes.process_tree import LINUX, TICKS_PER_S, read_proc
from benchwright.agent.samplers.base import SampledJob, Sampler, SamplerReading

_MOST_THREADS = 512
# The kernel counts CPU time in ticks of 10 ms: over less time than this, rounding dominates.
_LEAST_NS = 100_000_000


class MachineSampler(Sampler):
    """Load average, steal, CPU use of others, how long a control group's limit held the job back, and the share of the CPU
    time it wanted that it got.

    That share is known only for processes that live for two samples; the use of others even for the shortest job.
    """

    name = "machine"
    budget = 0.001

    def __init__(self, subject: SampledJob, root: str = "/") -> None:
        self._subject = subject
        self._root = root if LINUX and read_cpu_quota(root) is not None else None  # None: no limit on CPU time
        self._throttled: tuple[int, float] | None = None
        self._since: tuple[float, ...] | None = None  # when ticks were last read; then all, idle, stolen, our own
        self._threads: dict[tuple[int, str], tuple[int, int]] = {}  # ns it ran, ns it waited for a core
        self._first = True

    def sample(self, now_ns: int) -> list[SamplerReading]:
        values: dict[str, float] = {"load_1m": round(os.getloadavg()[0], 2)}
        if LINUX:
            self._add_use(now_ns, values)
            self._add_own_share(values)
            self._add_quota(now_ns, values)
        return [SamplerReading(values)]

    def _add_use(self, now_ns: int, values: dict[str, float]) -> None:
        ticks = read_ticks()
        if ticks is None:
            return
        now = (now_ns, *ticks, self._read_own_ticks())
        if self._since is None:
            self._since = now
        elif now_ns - self._since[0] >= _LEAST_NS:
            passed, idle, stolen, own = (b - a for a, b in zip(self._since[1:], now[1:], strict=True))
            self._since = now
            if passed > 0:
                shares = {"steal": stolen, "idle": idle, "others": passed - idle - stolen - own}
                values.update({f"{name}_percent": round(max(0.0, 100 * n / passed), 2) for name, n in shares.items()})

    def _add_quota(self, now_ns: int, values: dict[str, float]) -> None:
        """For how much of the time a control group's limit held the job back."""
        if self._root is None:
            return
        before, self._throttled = self._throttled, (now_ns, read_throttled_s(self._root))
        if before is not None and now_ns > before[0]:
            held_s = self._throttled[1] - before[1]
            values["quota_percent"] = round(max(0.0, 100 * held_s / ((now_ns - before[0]) / 1e9)), 2)

    def _read_own_ticks(self) -> float:
        """Of the job and its supervisor: of living processes, of those they waited for, and of those we reaped."""
        used = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return used * TICKS_PER_S + sum(stat.cpu_ticks + stat.reaped_ticks for stat in self._subject.processes())

    def _add_own_share(self, values: dict[str, float]) -> None:
        before, self._threads = self._threads, self._read_threads()
        ran_ns = waited_ns = 0
        for thread, (ran, waited) in self._threads.items():
            # A new thread did all of it since the last sample, except in the first round.
            earlier = before.get(thread, (ran, waited) if self._first else (0, 0))
            ran_ns += ran - earlier[0]
            waited_ns += waited - earlier[1]
        self._first = False
        if ran_ns + waited_ns > 1_000_000:
            values["own_share"] = round(ran_ns / (ran_ns + waited_ns), 4)

    def _read_threads(self) -> dict[tuple[int, str], tuple[int, int]]:
        found: dict[tuple[int, str], tuple[int, int]] = {}
        for stat in self._subject.processes():
            if stat.ended:
                continue
            for task in _tasks(stat.pid, stat.threads):
                data = read_proc(f"/proc/{stat.pid}/task/{task}/schedstat")
                if data:
                    ran, waited, _ = data.split()
                    found[stat.pid, task] = (int(ran), int(waited))
            if len(found) >= _MOST_THREADS:
                break
        return found


def _tasks(pid: int, threads: int) -> list[str]:
    if threads == 1:
        return [str(pid)]
    try:
        return os.listdir(f"/proc/{pid}/task")[:_MOST_THREADS]
    except OSError:
        return []


def read_ticks(path: str = "/proc/stat") -> tuple[int, int, int] | None:
    """Ticks of all cores since boot: all, idle, and stolen by the hypervisor; None if the kernel does not report them."""
    words = (read_proc(path) or b"").partition(b"\n")[0].split()
    if len(words) < 5 or words[0] != b"cpu" or not all(word.isdigit() for word in words[1:]):
        return None
    ticks = [int(word) for word in words[1:9]]  # guest time is part of user time already
    return sum(ticks), sum(ticks[3:5]), ticks[7] if len(ticks) > 7 else 0


def open_sampler(subject: SampledJob) -> Sampler | None:
    """Works everywhere; what the system does not report is left out."""
    return MachineSampler(subject)
