"""The two figures of main memory, PSS and RSS, and which of them to show first.

PSS counts a shared page once; the sum of RSS counts it for every process. A program that loads 300 MB and forks four
workers has about 300 MB of PSS, and 1.5 GB of RSS. A model has one figure, the largest RSS of the process that measured it since
before it was loaded: its PSS is smaller the more of torch it shares with other workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchwright.core.run import Launch

PEAK_PSS = "memory.peak_pss"
PEAK_RSS = "memory.peak_rss"
OF_MODEL = "memory.host"
WORDS = {OF_MODEL: "RSS", PEAK_PSS: "PSS", PEAK_RSS: "RSS"}


def headline_metric(launches_with: Mapping[str, int]) -> str | None:
    """The first of a model's own, PSS and RSS that every launch has, since they must not be mixed; None if there is none.

    `launches_with`: metric → how many have it.
    """
    most = max(launches_with.values(), default=0)
    return next((metric for metric in WORDS if most and launches_with.get(metric, 0) == most), None)


def headline_of(launches: Sequence[Launch]) -> str | None:
    """The memory metric to show for these launches; None if they have none."""
    return headline_metric(
        {metric: sum(launch.measurement(metric) is not None for launch in launches) for metric in WORDS}
    )
