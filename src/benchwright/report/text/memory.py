"""How much main memory a benchmark needed, in words: PSS first where the kernel tells it, RSS beside it, both named."""

from __future__ import annotations

from collections.abc import Sequence

from benchwright.core.numbers.quantities import format_bytes
from benchwright.core.results.peak_memory import WORDS, headline_metric
from benchwright.core.results.summary import Summary


def memory_summaries(summaries: Sequence[Summary]) -> list[Summary]:
    """The headline first, then the other; empty if there is none."""
    found = {s.metric: s for s in reversed(summaries) if s.metric in WORDS}
    first = headline_metric({metric: s.launches for metric, s in found.items()})
    return sorted(found.values(), key=lambda s: s.metric != first)


def memory_words(summaries: Sequence[Summary]) -> str:
    """`310 MiB PSS, 1.5 GiB RSS`; PSS that only some launches have is left out."""
    peaks = memory_summaries(summaries)
    return ", ".join(one_memory(s) for s in peaks if s.launches >= peaks[0].launches)


def one_memory(summary: Summary) -> str:
    """`310 MiB PSS`. A bound is the kernel's, who looks at each process alone."""
    least, most = ("≤ ", " a process") if "bound" in summary.labels else ("", "")
    return f"{least}{format_bytes(summary.value)} {WORDS[summary.metric]}{most}"
