"""A metric condensed over the launches of a benchmark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from benchwright.core.metric import Direction
from benchwright.core.note import Note
from benchwright.core.run import Launch

# The two figures of main memory, PSS and RSS, and which of them to show first.
#
# PSS counts a shared page once; the sum of RSS counts it for every process. A program that loads 300 MB and forks four
# workers has about 300 MB of PSS, and 1.5 GB of RSS. A model has one figure, the largest RSS of the process that measured it since
# before it was loaded: its PSS is smaller the more of torch it shares with other workers.


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
    measured = [{m.metric for m in launch.measurements} for launch in launches]
    return headline_metric({metric: sum(metric in names for names in measured) for metric in WORDS})


class Interval(msgspec.Struct, frozen=True, gc=False):
    """`widened`: the factor it was widened by because neighbouring launches are correlated; 1: not at all."""

    low: float
    high: float
    widened: float = 1.0


class Percentile(msgspec.Struct, frozen=True, kw_only=True):
    """A percentile of single samples with a confidence bound; it says nothing about the median over launches.

    `bound` is an upper bound from p50 on and a lower one below; None with fewer independent samples than `needed`.
    """

    percent: float
    value: float
    bound: float | None
    confidence: float
    samples: int
    independent: int  # the effective sample size, at most
    needed: int | None  # None: no number of samples bounds it (p0, p100)


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over the launches that count. `interval` is None with too few launches."""

    metric: str
    unit: str | None
    direction: Direction
    source: str
    labels: dict[str, str]
    value: float  # median over launches
    launches: int
    values: tuple[float, ...]  # one for each launch, in order
    interval: Interval | None = None
    remarks: tuple[Note, ...] = ()  # what stands out; kinds: analysis/remarks.py
    percentiles: tuple[Percentile, ...] = ()  # of the pooled samples of all launches: the slow end, p90 first

    @property
    def best(self) -> float:
        return min(self.values) if self.direction is Direction.LOWER else max(self.values)

    @property
    def half_width(self) -> float | None:
        """Half the interval as a fraction of the value."""
        if self.interval is None or not self.value:
            return None
        return (self.interval.high - self.interval.low) / 2 / abs(self.value)

    @property
    def spread(self) -> float | None:
        """How much launches differ: half the interval, or half the range without one, as a fraction."""
        if self.half_width is not None:
            return self.half_width
        finite = [v for v in self.values if math.isfinite(v)]
        if len(finite) < 2 or not self.value or not math.isfinite(self.value):
            return None
        return (max(finite) - min(finite)) / 2 / abs(self.value)
