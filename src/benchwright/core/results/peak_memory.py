"""The two figures of main memory, PSS and RSS, and which of them to show first.

PSS counts a shared page once; the sum of RSS counts it for every process. A program that loads 300 MB and forks four
workers has about 300 MB of PSS, and 1.5 GB of RSS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchwright.core.run import Launch

PEAK_PSS = "memory.peak_pss"
PEAK_RSS = "memory.peak_rss"
WORDS = {PEAK_PSS: "PSS", PEAK_RSS: "RSS"}


def headline_metric(launches_with: Mapping[str, int]) -> str | None:
    """PSS if every launch has it, since the two must not be mixed, else RSS. `launches_with`: metric → how many have it."""
    pss, rss = launches_with.get(PEAK_PSS, 0), launches_with.get(PEAK_RSS, 0)
    if not pss and not rss:
        return None
    return PEAK_PSS if pss >= rss else PEAK_RSS


def headline_of(launches: Sequence[Launch]) -> str | None:
    """The memory metric to show for these launches; None if they have none."""
    return headline_metric(
        {metric: sum(launch.measurement(metric) is not None for launch in launches) for metric in WORDS}
    )
