"""All that a comparison with another run needs of a run. A store keeps it beside the run, so that comparing loads no samples."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from benchwright.analysis.comparison.sides import (
    MetricKey,
    counts_by_trend,
    key_of,
    may_depend_on_length,
    thinned_course,
    trends,
    without_disturbances,
)
from benchwright.analysis.remarks import FEWEST_WITHIN, remarks_within, thinned
from benchwright.analysis.summary import launch_value
from benchwright.core.aggregates import has_answer
from benchwright.core.benchmark import Benchmark
from benchwright.core.conditions import SideConditions, conditions_of, side_conditions, undecided_by
from benchwright.core.launches import noted_of
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction, describes_work
from benchwright.core.note import Note
from benchwright.core.run import Result, Run, why
from benchwright.core.status import Status

_LOOP = "loop"
MetricFigure = tuple[str, str, str | None]  # metric, source and unit


class ComparableMetric(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One metric of the launches that count, with its number in each. `terms` and `lengths`: every one that occurs, once.

    `trending`: launches whose values rise or fall with their steps; None: not known. `drift`: of the steps within a launch.
    """

    metric: str
    source: str
    labels: dict[str, str]
    aggregate: str
    terms: tuple[tuple[str | None, Direction], ...]
    lengths: tuple[tuple[int, int], ...] = ()  # samples of the warm-up, and those that count
    values: tuple[float, ...] = ()
    trending: int | None = None
    drift: Note | None = None

    @property
    def unit(self) -> str | None:
        return self.terms[0][0]

    @property
    def direction(self) -> Direction:
        return self.terms[0][1]

    @property
    def key(self) -> MetricKey:
        return key_of(self.metric, self.source, self.labels)


class LaunchEndings(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How the launches of a benchmark ended; warm-up launches are not among them."""

    status: Status
    why: str
    launches: int
    counted: int
    failed: int
    first_failure: str = ""


class ComparableResult(msgspec.Struct, frozen=True, array_like=True, gc=False):
    number: int  # in its run
    benchmark: Benchmark
    ending: LaunchEndings
    metrics: tuple[ComparableMetric, ...]
    figures: tuple[MetricFigure, ...]  # of all launches
    conditions: SideConditions
    undecided: Note | None = None  # why it decides nothing
    notes: tuple[Note, ...] = ()
    work: dict[str, float] = {}  # facts of the workload

    @property
    def sides(self) -> dict[MetricKey, ComparableMetric]:
        return {metric.key: metric for metric in self.metrics}


class ComparableRun(msgspec.Struct, frozen=True, array_like=True):
    """`run` has no results: they are in `results`."""

    run: Run
    results: tuple[ComparableResult, ...]


class Sketch(NamedTuple):
    """All that is left of the samples of a measurement: how many there were, some of them, and the last."""

    warmup: int
    samples: int
    some: Sequence[float] = ()
    last: float | None = None


def sketch(measurement: Measurement) -> Sketch:
    m = measurement
    some: Sequence[float] = ()
    if m.source == _LOOP and len(m.samples) >= FEWEST_WITHIN:
        some = thinned(m.samples)
    elif counts_by_trend(m.source, m.aggregate):
        some = thinned_course(m)
    last = m.samples[-1] if m.samples and describes_work(m.metric) else None
    return Sketch(len(m.warmup_samples), len(m.samples), some, last)


def comparable(
    run: Run, only: Collection[str] | None = None, sketch_of: Callable[[Measurement], Sketch] = sketch
) -> ComparableRun:
    """`only`: metrics whose numbers are wanted; None: all. `sketch_of`: of measurements that have lost their samples."""
    results = tuple(_result(number, run, only, sketch_of) for number in range(len(run.results)))
    return ComparableRun(replace(run, results=()), results)


def figures_of(result: Result) -> tuple[MetricFigure, ...]:
    found = {
        m.metric: (m.metric, m.source, m.unit)
        for x in result.launches
        for m in x.measurements
        if "process" not in m.labels  # of another process: shown, but does not count
    }
    return tuple(found.values())


def ending_of(result: Result) -> LaunchEndings:
    launches = [x for x in result.launches if not x.warmup]
    bad = [x for x in launches if x.status is not Status.OK]
    first = why(bad[0]) if bad else ""
    return LaunchEndings(result.status, why(result), len(launches), len(result.counted), len(bad), first)


def _result(
    number: int, run: Run, only: Collection[str] | None, sketch_of: Callable[[Measurement], Sketch]
) -> ComparableResult:
    result = run.results[number]
    conditions = [conditions_of(launch) for launch in result.counted]
    facts = (m for x in result.counted for m in x.measurements if m.samples and describes_work(m.metric))
    return ComparableResult(
        number,
        result.benchmark,
        ending_of(result),
        tuple(_metrics(result, run.workers, only, sketch_of)),
        figures_of(result),
        side_conditions(conditions),
        undecided_by(conditions, run.notes),
        tuple(noted_of([without_disturbances(launch) for launch in result.launches])),
        {m.metric: last for m in facts if (last := sketch_of(m).last) is not None},
    )


def _metrics(
    result: Result, workers: int | None, only: Collection[str] | None, sketch_of: Callable[[Measurement], Sketch]
) -> list[ComparableMetric]:
    groups: dict[MetricKey, list[Measurement]] = {}
    for launch in result.counted:
        own: dict[MetricKey, Measurement] = {}
        for m in launch.measurements:
            if m.samples and (m.value is not None or has_answer(m.aggregate, workers)):
                own[key_of(m.metric, m.source, m.labels)] = m
        for key, m in own.items():
            groups.setdefault(key, []).append(m)
    return [_metric(same, workers, only, sketch_of) for same in groups.values()]


def _metric(
    same: Sequence[Measurement],
    workers: int | None,
    only: Collection[str] | None,
    sketch_of: Callable[[Measurement], Sketch],
) -> ComparableMetric:
    first = same[0]
    terms = tuple(dict.fromkeys((m.unit, m.direction) for m in same))
    if only is not None and first.metric not in only:
        return ComparableMetric(first.metric, first.source, first.labels, first.aggregate, terms)
    sketches = [sketch_of(m) for m in same]
    lengths = tuple(dict.fromkeys((s.warmup, s.samples) for s in sketches))
    trending = None
    if len(lengths) > 1 and counts_by_trend(first.source, first.aggregate):
        trending = sum(trends(s.some) for s in sketches)
    drift = None
    if first.source == _LOOP:
        within = remarks_within([s.some for s in sketches])
        drift = next((note for note in within if note.kind == "drift_within"), None)
    values = tuple(launch_value(m, workers) for m in same)
    return ComparableMetric(
        first.metric, first.source, first.labels, first.aggregate, terms, lengths, values, trending, drift
    )


def common_values(
    control: ComparableMetric, treatment: ComparableMetric
) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """The numbers of both sides; None if those depend on how long launches ran, which only their samples tell."""
    values = control.values, treatment.values
    if not may_depend_on_length(control.source, control.aggregate):
        return values
    lengths = {*control.lengths, *treatment.lengths}
    compared = {sum(each) for each in lengths} if control.aggregate == "last" else lengths
    if len(compared) == 1:
        return values
    if not counts_by_trend(control.source, control.aggregate):
        return None
    if control.trending is None or treatment.trending is None:
        return None
    return None if 2 * (control.trending + treatment.trending) > sum(map(len, values)) else values
