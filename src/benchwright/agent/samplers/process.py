"""Memory and CPU time of the job's process tree."""

from __future__ import annotations

import resource

from benchwright.agent.processes import LINUX, PAGE_BYTES, TICKS_PER_S, read_proc
from benchwright.agent.samplers.base import Sample, Sampler, Subject

# The kernel counts CPU time in ticks of 10 ms: over less time than this, their rounding is what shows.
_LEAST_NS = 100_000_000


class ProcessSampler(Sampler):
    """RSS, CPU and count of the tree."""

    name = "process"
    budget = 0.004

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._most_cpu_s = 0.0
        self._since: tuple[int, float] | None = None  # when CPU use was last told, and the CPU time until then

    def sample(self, now_ns: int) -> list[Sample]:
        # One that is about to end has given its memory back already.
        living = [stat for stat in self._subject.processes() if stat.rss_pages and not stat.ended]
        cpu_s = self._cpu_so_far_s()
        values: dict[str, float] = {"cpu_s": round(cpu_s, 3), "processes": len(living)}
        if self._since is None:  # it has only just begun and does not have its memory yet
            self._since = now_ns, cpu_s
            return [Sample(values)]
        if living:
            values["rss_bytes"] = sum(stat.rss_pages for stat in living) * PAGE_BYTES
        elapsed_ns = now_ns - self._since[0]
        if elapsed_ns >= _LEAST_NS:
            values["cpu_percent"] = round(1e11 * (cpu_s - self._since[1]) / elapsed_ns, 2)
            self._since = now_ns, cpu_s
        return [Sample(values)]

    def _cpu_so_far_s(self) -> float:
        """CPU time of the tree: of those alive, of those they waited for, and of those we reaped ourselves."""
        ticks = sum(stat.cpu_ticks + stat.reaped_ticks for stat in self._subject.processes())
        reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
        # A process nobody waits for takes its time with it, so the sum may shrink; what was used stays used.
        self._most_cpu_s = max(self._most_cpu_s, ticks / TICKS_PER_S + reaped.ru_utime + reaped.ru_stime)
        return self._most_cpu_s


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
