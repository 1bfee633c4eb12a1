"""The two sides of a comparison: for each metric one value per launch, taken over the same steps on both sides.

Metrics of a program's progress (a loss, an accuracy) depend on how long its loop ran. If launches ran for different numbers
of steps, such a metric is taken at the last step they all reached, or over the steps they all measured.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from benchwright.analysis.statistics.dependence import FEWEST, trend_chance
from benchwright.analysis.summary import launch_value
from benchwright.core.aggregates import has_answer
from benchwright.core.conditions import DISTURBING
from benchwright.core.launches import noted_of
from benchwright.core.measurement import Measurement, in_order
from benchwright.core.metric import Direction
from benchwright.core.note import Note
from benchwright.core.run import Launch, Result

MetricKey = tuple[str, str, tuple[tuple[str, str], ...]]  # metric, source, labels
_PROGRAMS_OWN = ("give", "log", "import")
_OF_THE_COURSE = ("last", "min", "max")  # depend on how far a launch got, trend or not
_OF_THE_WHOLE = ("count", "total", "first")  # do not depend on it, or are meant to
_TREND = 0.01
_MOST_LOOKED_AT = 60  # values of a launch


class MeasuredMetric(Protocol):
    @property
    def metric(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def unit(self) -> str | None: ...
    @property
    def direction(self) -> Direction: ...
    @property
    def labels(self) -> dict[str, str]: ...


class Side(NamedTuple):
    """One metric of one benchmark: its measurement in each launch, by block or number of the launch."""

    launches: dict[int, Measurement]
    workers: int | None

    @property
    def first(self) -> Measurement:
        return next(iter(self.launches.values()))

    @property
    def terms(self) -> list[tuple[str | None, Direction]]:
        """Units and directions, of which there should be one."""
        return list(dict.fromkeys((m.unit, m.direction) for m in self.launches.values()))


class Values(NamedTuple):
    """One value per launch for both sides, in order; `basis` says over which steps, if that was a choice."""

    control: Sequence[float]
    treatment: Sequence[float]
    basis: str | None = None
    blocks: tuple[int, ...] = ()  # of pairs; empty if all of them were left out


def sides_of(result: Result, workers: int | None, paired: bool = False) -> dict[MetricKey, Side]:
    """`paired`: launches are keyed by block, and those without one do not count."""
    sides: dict[MetricKey, Side] = {}
    for number, launch in enumerate(result.counted):
        place = launch.block if paired else number
        if place is not None:
            _add(sides, launch, place, workers)
    return sides


def values_of(control: Side, treatment: Side, paired: bool, left_out: Collection[int] = ()) -> Values | None:
    """None if no step was measured by all launches, or a side has no launch with a value.

    `left_out`: blocks that do not count. If none is left, the values are those of all, without blocks.
    """
    both = control.launches.keys() & treatment.launches.keys()
    counting = both - set(left_out)
    places = sorted(counting or both) if paired else None
    ours, theirs = ([side.launches[p] for p in places or side.launches] for side in (control, treatment))
    if not ours or not theirs or places == []:
        return None
    cut, basis = _at_equal_steps(ours, theirs)
    if cut is None:
        return None
    return Values(
        [launch_value(m, control.workers) for m in cut[0]],
        [launch_value(m, treatment.workers) for m in cut[1]],
        basis,
        tuple(sorted(counting)) if paired else (),
    )


def _add(sides: dict[MetricKey, Side], launch: Launch, place: int, workers: int | None) -> None:
    for m in launch.measurements:
        if m.samples and (m.value is not None or has_answer(m.aggregate, workers)):
            sides.setdefault(key_of(m.metric, m.source, m.labels), Side({}, workers)).launches[place] = m


def key_of(metric: str, source: str, labels: Mapping[str, str]) -> MetricKey:
    return metric, source, tuple(sorted(labels.items())) if labels else ()


def _at_equal_steps(
    ours: Sequence[Measurement], theirs: Sequence[Measurement]
) -> tuple[tuple[list[Measurement], list[Measurement]] | None, str | None]:
    every = [*ours, *theirs]
    lengths = {(len(m.warmup_samples), len(m.samples)) for m in every}
    totals = {warmup + measured for warmup, measured in lengths}
    first = every[0]
    last_only = first.aggregate == "last"
    if len(totals if last_only else lengths) == 1 or not _depends_on_length(every):
        return (list(ours), list(theirs)), None
    stop, start = min(totals), 0 if last_only else max(warmup for warmup, _ in lengths)
    if start >= stop:
        return None, None
    basis = f"at value {stop}" if last_only else f"over values {start + 1} to {stop}"
    cut = tuple([_cut(m, start, stop) for m in side] for side in (ours, theirs))
    return (cut[0], cut[1]), f"compared {basis} of each launch, which all of them reached"


def _depends_on_length(every: Sequence[Measurement]) -> bool:
    first = every[0]
    if not counts_by_trend(first.source, first.aggregate):
        return may_depend_on_length(first.source, first.aggregate)
    return 2 * sum(trends(thinned_course(m)) for m in every) > len(every)


def may_depend_on_length(source: str, aggregate: str) -> bool:
    return source in _PROGRAMS_OWN and aggregate not in _OF_THE_WHOLE


def counts_by_trend(source: str, aggregate: str) -> bool:
    """Whether it depends on how far launches got only if most of them show a trend."""
    return may_depend_on_length(source, aggregate) and aggregate not in _OF_THE_COURSE


def thinned_course(m: Measurement) -> Sequence[float]:
    values = in_order(m) if m.warmup_samples else m.samples  # a long one is not copied
    return values[:: -(-len(values) // _MOST_LOOKED_AT) or 1]


def trends(thin: Sequence[float]) -> bool:
    return len(thin) >= FEWEST and trend_chance(thin) <= _TREND


def _cut(m: Measurement, start: int, stop: int) -> Measurement:
    course = in_order(m)
    return msgspec.structs.replace(m, warmup_samples=course[:start], samples=course[start:stop])


def key_words(key: MetricKey) -> str:
    """`rate [device 0]`."""
    labels = ", ".join(f"{label} {value}" for label, value in key[2] if label != "loop")
    return f"{key[0]} [{labels}]" if labels else key[0]


def noted(before: Result, after: Result) -> list[Note]:
    """The notes of both sides' launches."""
    names = names_of_sides(before.benchmark.name, after.benchmark.name)
    return [
        note.about(name)
        for name, result in zip(names, (before, after), strict=True)
        for note in noted_of(result.launches)
    ]


def names_of_sides(before: str, after: str) -> tuple[str, str]:
    return (before, after) if before != after else (f"{before}, control", f"{after}, treatment")


def without_disturbances(launch: Launch) -> Launch:
    """For separate runs, whose effects themselves carry the disturbances."""
    if not launch.notes:
        return launch
    return msgspec.structs.replace(launch, notes=tuple(n for n in launch.notes if n.kind not in DISTURBING))
