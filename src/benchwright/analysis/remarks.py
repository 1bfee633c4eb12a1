"""Remarks on what stands out in the numbers, with what to do about it. No value is ever dropped.

Each test has a false-alarm rate of 2 % or less on independent noise (performance/coverage.py prints the rates). The remark
that there are too few launches to see slow drift is not a test: every interval from fewer than 20 gets it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchwright.analysis.statistics.dependence import ENOUGH, FEWEST, effective_sample_size, trend_chance
from benchwright.analysis.statistics.drift import ALARM, LEAST_CHANGE, change, drift_of
from benchwright.core.note import Note

# Steps within a launch are many and cheap; the more launches agree, the more certain the finding.
_ALARM_WITHIN = 0.01
_BLOCKS = 10
FEWEST_WITHIN = 5 * _BLOCKS
_MOST_WITHIN = 250
_MOST_LAUNCHES_WITHIN = 5
NOISY = 0.05
_FAR_APART = 0.5


class Outlier(NamedTuple):
    """`place` counts from 0 in the order given; `factor`: the value divided by the median."""

    place: int
    value: float
    factor: float


class TwoGroups(NamedTuple):
    """The medians of the lower and the higher group, and the share of values in the higher one."""

    low: float
    high: float
    high_share: float


def outliers(values: Sequence[float]) -> tuple[Outlier, ...]:
    """Values further from the median than the spread of the others explains; they still count."""
    n = len(values)
    if n < FEWEST:
        return ()
    median = statistics.median(values)
    away = [abs(v - median) for v in values]
    # In units of the median deviation: 98.5 % of Gaussian samples of this size stay below, by simulation.
    limit = max(statistics.median(away) * (6.3 + 64 / n**1.2), LEAST_CHANGE * abs(median))
    found = (i for i, distance in enumerate(away) if distance > limit)
    return tuple(Outlier(i, values[i], values[i] / median if median else math.nan) for i in found)


def two_groups(values: Sequence[float]) -> TwoGroups | None:
    """Whether the values form two groups with nothing between them, neither of them just a few outliers.

    The widest gap with at least a fifth of the values on each side is compared with the widest gap that uniformly
    distributed values leave: of all flat and unimodal distributions, the flat one leaves the widest.
    """
    ordered = sorted(values)
    # Many values are first condensed to 64 evenly ranked ones, so that a stray value between the groups does not hide them.
    points = [ordered[int((k + 0.5) * len(ordered) / 64)] for k in range(64)] if len(ordered) > 64 else ordered
    n = len(points)
    if n < FEWEST or points[0] == points[-1]:
        return None
    least = max(2, math.ceil(n / 5))
    places = range(least, n - least + 1)
    at = max(places, key=lambda k: points[k] - points[k - 1])
    gap = points[at] - points[at - 1]
    # P(one given gap of n - 1 takes more than a share t of the range) = (1 - t)^(n - 2) for uniformly distributed values.
    limit = 1 - (0.5 * ALARM / len(places)) ** (1 / (n - 2))
    if gap <= limit * (points[-1] - points[0]) or gap < LEAST_CHANGE * abs(points[at]):
        return None
    lower = [v for v in ordered if v < points[at]]
    upper = ordered[len(lower) :]
    return TwoGroups(statistics.median(lower), statistics.median(upper), len(upper) / len(ordered))


def relative_spread(values: Sequence[float]) -> float:
    """A robust standard deviation (from the median deviation) as a fraction of the median."""
    median = statistics.median(values)
    if not median:
        return 0.0
    return 1.4826 * statistics.median(abs(v - median) for v in values) / abs(median)


def remarks(values: Sequence[float], series: Sequence[Sequence[float]] = ()) -> tuple[Note, ...]:
    """Notes on oddities across launches (`values`, one for each, in order) and within them (`series`, the samples of each).

    Of many launches and samples only some, evenly chosen, are examined, so that large reports stay quick.
    """
    finite = [v for v in values if math.isfinite(v)]
    if len(finite) < len(values) or not finite:
        return ()
    found = [*_about_time(finite), *_about_shape(finite), *_about_spread(finite)]
    if len(finite) >= FEWEST and (few := few_launches(len(finite))):
        found.append(few)
    return (*found, *remarks_within(series))


def remarks_within(series: Sequence[Sequence[float]]) -> list[Note]:
    """Notes on oddities within more than half of the launches."""
    long = [s for s in series if len(s) >= FEWEST_WITHIN]
    some = long[:: -(-len(long) // _MOST_LAUNCHES_WITHIN)] if long else []
    thin = [thinned(s) for s in some]
    return _within([s for s in thin if all(map(math.isfinite, s))])


def few_launches(count: int) -> Note | None:
    """A note on the limits of so few launches; None from 20 on. For each metric with an interval, and once for a run."""
    if count >= ENOUGH:
        return None
    if count < FEWEST:
        launches = "a single launch" if count == 1 else f"{count} launches"
        return Note(
            kind="few_launches", text=f"no confidence interval from {launches}", remedy=f"use --repeat {FEWEST} or more"
        )
    return Note(
        kind="few_launches",
        text=f"with {count} launches, slow drift can go unnoticed and the interval may be too narrow",
        remedy=f"use --repeat {ENOUGH} or more",
    )


def far_apart(values: Sequence[float], noun: str, shown: Callable[[float], str]) -> Note | None:
    """A remark on few values that differ so much that one number is near none of them: two of them by a factor of 2.

    `shown`: a value with its unit.
    """
    if len(values) < 2 or not all(map(math.isfinite, values)) or relative_spread(values) <= _FAR_APART:
        return None
    return Note(
        kind="far_apart",
        text=f"far apart: {noun} range from {shown(min(values))} to {shown(max(values))}; one number says little about them",
        remedy="look at its log; --repeat 6 or more shows what is typical",
    )


def thinned(samples: Sequence[float]) -> Sequence[float]:
    """At most a few hundred samples, evenly chosen: enough to see drift and groups, quick enough for a report."""
    return samples[:: -(-len(samples) // _MOST_WITHIN)]


def _about_time(values: Sequence[float]) -> list[Note]:
    drift = drift_of(values)
    if drift is None:
        return []
    if drift.kind == "step":
        text = f"the level changed by {drift.change * 100:+.1f} % after launch {drift.place} of {len(values)}"
        text += ": the interval describes neither level"
        remedy = (
            "find out what changed on the machine ('bw doctor') and measure again, or compare launches that alternate"
        )
    elif drift.kind == "trend":
        way = "rose" if drift.change > 0 else "fell"
        text = f"{way} by {abs(drift.change) * 100:.1f} % from the first launches to the last; the interval does not cover this"
        remedy = "let the machine settle with --warmup-runs, or compare interleaved"
    else:
        text = "neighbouring launches are correlated: something slow on the machine affects the result; the interval was widened"
        remedy = "look for other load with 'bw doctor', or compare interleaved"
    return [Note(kind=drift.kind, text=text, remedy=remedy)]


def _about_shape(values: Sequence[float]) -> list[Note]:
    groups = two_groups(values)
    if groups is not None:
        return [
            Note(
                kind="two_groups",
                text=f"{_groups_in_words(groups)} of the launches",
                remedy="look for two clock speeds, two kinds of cores or a cache that is sometimes cold",
            )
        ]
    far = outliers(values)
    if not far:
        return []
    named = ", ".join(f"launch {o.place + 1} ({o.factor:.2f}×)" for o in far[:3])
    more = f" and {len(far) - 3} more" if len(far) > 3 else ""
    return [
        Note(
            kind="outliers",
            text=f"outliers: {named}{more}; still counted",
            remedy="check its log and what else ran then; if it is the first one, use --warmup-runs 1",
        )
    ]


def _about_spread(values: Sequence[float]) -> list[Note]:
    if len(values) < 3 or relative_spread(values) <= NOISY:
        return []
    return [
        Note(
            kind="noisy",
            text=f"noisy: launches differ by ± {relative_spread(values) * 100:.0f} %",
            remedy="use more launches (--repeat), a quieter machine or pinned cores; 'bw doctor' measures the noise",
        )
    ]


def _within(series: Sequence[Sequence[float]]) -> list[Note]:
    if not series:
        return []
    found = []
    drifts = [d for samples in series if (d := _drift(samples)) is not None]
    one_way = max((sum(d > 0 for d in drifts), sum(d < 0 for d in drifts)))
    if 2 * one_way > len(series):
        found.append(
            Note(
                kind="drift_within",
                text=f"samples drift by {statistics.median(drifts) * 100:+.1f} % within a launch",
                remedy="use a longer warm-up (--warmup 30s), or check whether the machine heats up",
            )
        )
    split = [g for samples in series if (g := _groups_within(samples)) is not None]
    if 2 * len(split) > len(series):
        middle = sorted(split, key=lambda g: g.high_share)[len(split) // 2]
        found.append(
            Note(
                kind="two_groups_within",
                text=f"{_groups_in_words(middle)} of the samples within a launch",
                remedy="look for work that only some steps do (saving, evaluating, garbage collection) or two clock speeds",
            )
        )
    return found


def _drift(samples: Sequence[float]) -> float | None:
    size = len(samples) / _BLOCKS
    blocks = [statistics.median(samples[round(b * size) : round((b + 1) * size)]) for b in range(_BLOCKS)]
    moved = change(blocks)
    return moved if trend_chance(blocks) <= _ALARM_WITHIN and abs(moved) >= LEAST_CHANGE else None


def _groups_within(samples: Sequence[float]) -> TwoGroups | None:
    groups = two_groups(samples)
    # A series that drifts slowly passes through levels; those are not two groups.
    return groups if groups and effective_sample_size(samples) >= len(samples) / 4 else None


def _groups_in_words(groups: TwoGroups) -> str:
    apart = (groups.high / groups.low - 1) * 100 if groups.low else math.nan
    low_share = round((1 - groups.high_share) * 100)
    return f"two groups {apart:.0f} % apart: {low_share} % around {groups.low:.4g} and {100 - low_share} % around {groups.high:.4g}"
