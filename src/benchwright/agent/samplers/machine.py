"""How busy the machine is with other things: load, time stolen by the hypervisor, time the job had to wait for a core."""

from __future__ import annotations

import os

from benchwright.agent.processes import LINUX, read_proc
from benchwright.agent.samplers.base import Sample, Sampler, Subject

_MOST_THREADS = 512


class MachineSampler(Sampler):
    """Load average, steal, and the share of the CPU time it wanted that the job's tree got."""

    name = "machine"
    budget = 0.001

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._ticks: tuple[int, int] | None = None  # all, stolen
        self._threads: dict[tuple[int, str], tuple[int, int]] = {}  # ns it ran, ns it waited for a core
        self._first = True

    def sample(self, now_ns: int) -> list[Sample]:
        values: dict[str, float] = {"load_1m": round(os.getloadavg()[0], 2)}
        if LINUX:
            self._add_steal(values)
            self._add_own_share(values)
        return [Sample(values)]

    def _add_steal(self, values: dict[str, float]) -> None:
        before, self._ticks = self._ticks, read_ticks()
        if before and self._ticks and self._ticks[0] > before[0]:
            stolen = self._ticks[1] - before[1]
            values["steal_percent"] = round(100 * stolen / (self._ticks[0] - before[0]), 2)

    def _add_own_share(self, values: dict[str, float]) -> None:
        before, self._threads = self._threads, self._read_threads()
        ran_ns = waited_ns = 0
        for thread, (ran, waited) in self._threads.items():
            # A thread that is new has done all of it since the last time, except in the first round.
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


def read_ticks() -> tuple[int, int] | None:
    """Ticks of all cores since boot: all, and those stolen by the hypervisor."""
    text = read_proc("/proc/stat")
    if not text:
        return None
    fields = [int(word) for word in text.split(b"\n", 1)[0].split()[1:9]]
    return sum(fields), fields[7] if len(fields) > 7 else 0


def open_sampler(subject: Subject) -> Sampler | None:
    """Works everywhere; what the system does not tell is left out."""
    return MachineSampler(subject)
