"""Memory and CPU time of the job's process tree."""

from __future__ import annotations

import resource

from benchwright.agent.processes.process_tree import LINUX, PAGE_BYTES, TICKS_PER_S, ProcessStat, read_proc, read_stat
from benchwright.agent.samplers.base import SampledJob, Sampler, SamplerReading

# The kernel counts CPU time in ticks of 10 ms: over less time than this, rounding dominates.
_LEAST_NS = 100_000_000


class ProcessSampler(Sampler):
    """RSS, CPU time and number of processes of the tree, and how many of them a signal has stopped."""

    name = "process"
    budget = 0.004

    def __init__(self, subject: SampledJob) -> None:
        self._subject = subject
        self._most_cpu_s = 0.0
        self._since: tuple[int, float] | None = None  # when CPU use was last reported, and the CPU time until then

    def sample(self, now_ns: int) -> list[SamplerReading]:
        # A process about to end has already given its memory back.
        living = [stat for stat in self._subject.processes() if stat.rss_pages and not stat.ended]
        cpu_s = self._cpu_so_far_s()
        values: dict[str, float] = {"cpu_s": round(cpu_s, 3), "processes": len(living)}
        if stopped := sum(stat.state == "T" for stat in self._subject.processes()):
            values["stopped"] = stopped
        if self._since is None:  # it has only just begun and has not allocated its memory yet
            self._since = now_ns, cpu_s
            return [SamplerReading(values)]
        if living:
            values["rss_bytes"] = sum(stat.rss_pages for stat in living) * PAGE_BYTES
        elapsed_ns = now_ns - self._since[0]
        if elapsed_ns >= _LEAST_NS:
            values["cpu_percent"] = round(1e11 * (cpu_s - self._since[1]) / elapsed_ns, 2)
            self._since = now_ns, cpu_s
        return [SamplerReading(values)]

    def _cpu_so_far_s(self) -> float:
        """CPU time of the tree: of living processes, of those they waited for, and of those we reaped."""
        ticks = sum(stat.cpu_ticks + stat.reaped_ticks for stat in self._subject.processes())
        reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
        reaped_s = reaped.ru_utime + reaped.ru_stime - self._subject.cpu_before_s
        # The time of a process that nobody waits for is lost, so the sum may shrink; what was used stays used.
        self._most_cpu_s = max(self._most_cpu_s, ticks / TICKS_PER_S + reaped_s)
        return self._most_cpu_s


class PssSampler(Sampler):
    """PSS of the tree, which counts shared memory once, and its RSS at the same moment.

    The kernel walks every page table for it, which may make the program wait: the longer that takes, the more rarely it
    is read.
    """

    name = "process"
    budget = 0.0025

    def __init__(self, subject: SampledJob) -> None:
        self._subject = subject

    def sample(self, now_ns: int) -> list[SamplerReading]:
        pss_bytes = rss_bytes = 0
        for stat in self._subject.processes():
            found = None if stat.ended else read_pss_and_rss_bytes(stat.pid)
            if found is not None:
                pss_bytes += found[0]
                rss_bytes += found[1]
            elif is_alive(stat):
                return []  # another user's process: without it the sum would be too small
        return [SamplerReading({"pss_bytes": pss_bytes, "rss_bytes": rss_bytes})] if pss_bytes else []


def read_pss_and_rss_bytes(pid: int) -> tuple[int, int] | None:
    """PSS and RSS of a process; None if the kernel does not report them."""
    text = read_proc(f"/proc/{pid}/smaps_rollup")
    if not text:
        return None
    sizes = []
    for name in (b"\nPss:", b"\nRss:"):
        _, found, rest = text.partition(name)
        if not found:
            return None
        sizes.append(int(rest.split(None, 1)[0]) * 1024)
    return sizes[0], sizes[1]


def is_alive(stat: ProcessStat) -> bool:
    """Whether it still runs and has memory."""
    now = read_stat(stat.pid)
    return now is not None and now.start_ticks == stat.start_ticks and not now.ended and now.rss_pages > 0


def open_sampler(subject: SampledJob) -> Sampler | None:
    """Works everywhere."""
    return ProcessSampler(subject)


def open_pss_sampler(subject: SampledJob) -> Sampler | None:
    """None where the system does not report it."""
    return PssSampler(subject) if LINUX else None
