"""Ends a job that uses more memory than it may: all its processes together, memory they share counted once."""

from __future__ import annotations

from benchwright.agent.processes.process_tree import PAGE_BYTES
from benchwright.agent.samplers.process import read_pss_and_rss_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from benchwright.agent.samplers.base import SampledJob

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
