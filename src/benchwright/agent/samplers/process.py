"""Memory and CPU time of the job's process tree."""

from __future__ import annotations

import resource

from benchwright.agent.processes import LINUX, PAGE_BYTES, TICKS_PER_S, read_proc
from benchwright.agent.samplers.base import Sample, Sampler, Subject


class ProcessSampler(Sampler):
    """RSS, CPU and count of the tree."""

    name = "process"
    budget = 0.004

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._last_cpu_s = 0.0
        self._last_ns: int | None = None

    def sample(self, now_ns: int) -> list[Sample]:
        # One that is about to end has given its memory back already.
        living = [stat for stat in self._subject.processes() if stat.rss_pages and not stat.ended]
        cpu_s = self._cpu_so_far_s()
        values: dict[str, float] = {"cpu_s": round(cpu_s, 3), "processes": len(living)}
        if living:
            values["rss_bytes"] = sum(stat.rss_pages for stat in living) * PAGE_BYTES
        if self._last_ns is not None and now_ns > self._last_ns:
            used_s = max(0.0, cpu_s - self._last_cpu_s)
            values["cpu_percent"] = round(1e11 * used_s / (now_ns - self._last_ns), 2)
        self._last_cpu_s, self._last_ns = cpu_s, now_ns
        return [Sample(values)]

    def _cpu_so_far_s(self) -> float:
        """CPU time of the tree: of those alive, of those they waited for, and of those we reaped ourselves."""
        ticks = sum(stat.cpu_ticks + stat.reaped_ticks for stat in self._subject.processes())
        reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
        # A process nobody waits for takes its time with it, so the sum may shrink; what was used stays used.
        return max(self._last_cpu_s, ticks / TICKS_PER_S + reaped.ru_utime + reaped.ru_stime)


class PssSampler(Sampler):
    """PSS of the tree, where memory that processes share is counted once.

    The kernel walks every page table for it, during which the program cannot map memory: it is read rarely, and
    the more rarely the longer it takes.
    """

    name = "process"
    budget = 0.0015
    interval_s = 2.0

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def sample(self, now_ns: int) -> list[Sample]:
        living = [stat.pid for stat in self._subject.processes() if not stat.ended]
        sizes = [size for size in map(read_pss_bytes, living) if size is not None]
        return [Sample({"pss_bytes": sum(sizes)})] if sizes else []


def read_pss_bytes(pid: int) -> int | None:
    """The process's proportional share of the memory it uses; None if the kernel does not tell."""
    text = read_proc(f"/proc/{pid}/smaps_rollup")
    if not text:
        return None
    _, found, rest = text.partition(b"\nPss:")
    return int(rest.split(None, 1)[0]) * 1024 if found else None


def open_sampler(subject: Subject) -> Sampler | None:
    """Works everywhere."""
    return ProcessSampler(subject)


def open_pss_sampler(subject: Subject) -> Sampler | None:
    """None where the system does not tell."""
    return PssSampler(subject) if LINUX else None
