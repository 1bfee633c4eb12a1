"""Scores: the total over a benchmark's processes, and the weighted geometric mean over a suite."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from benchwright.analysis.statistics.intervals import interval_of_median
from benchwright.analysis.summary import launch_value
from benchwright.core.conditions import undecided, unlike
from benchwright.core.efficiency import PeakShare
from benchwright.core.launches import by_position
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.note import Note
from benchwright.core.quantities import format_duration
from benchwright.core.run import Launch, Result, Run, why
from benchwright.core.score import BenchmarkScore, ScoreComparison, ScoreRatio, Seat, SuiteScore
from benchwright.core.status import Reason, Status
from benchwright.core.summary import headline_of


def score_run(
    run: Run,
    *,
    weights: Mapping[str, float] | None = None,
    price: float | None = None,
    shares: Mapping[str, PeakShare | None] | None = None,
) -> SuiteScore:
    """The score of every benchmark and of the suite. `weights`, by name, override the run's own; a benchmark that has one
    but is not in the run is missing. `shares`: of the machine's peak, by name."""
    given = weights or {}
    scores = [
        benchmark_score(r, weight=given.get(r.benchmark.name, r.benchmark.weight), workers=run.workers)
        for r in run.results
        if r.reason is not Reason.DISABLED
    ]
    scores = [replace(s, peak_share=(shares or {}).get(s.name)) for s in scores]
    known = {r.benchmark.name for r in run.results}
    scores += [
        BenchmarkScore(name=name, status=Status.PENDING, weight=weight, why="not in this run")
        for name, weight in given.items()
        if name not in known and weight > 0
    ]
    return suite_score(scores, price=price)


def suite_score(scores: Sequence[BenchmarkScore], *, price: float | None = None) -> SuiteScore:
    """Weights are relative to each other; a benchmark of weight 0 is shown but does not count."""
    weighted = [s for s in scores if s.weight > 0]
    counting = [s for s in weighted if s.value is not None]
    return SuiteScore(
        value=geometric_mean([(s.value, s.weight) for s in counting if s.value is not None]),
        benchmarks=tuple(scores),
        expected=len(weighted),
        counted=len(counting),
        failed=sum(1 for s in weighted if s.status is Status.FAILED),
        price=price,
    )


def geometric_mean(values: Sequence[tuple[float, float]]) -> float | None:
    """Of (value, weight) pairs with positive values; None if there are none."""
    total = math.fsum(weight for _, weight in values)
    if not total:
        return None
    return math.exp(math.fsum(math.log(value) * (weight / total) for value, weight in values))


def compare_scores(control: SuiteScore, treatment: SuiteScore, control_id: str) -> ScoreComparison:
    """Uses the treatment's weights; lists benchmarks without a score of the same unit in both."""
    before = {s.name: s for s in control.benchmarks if s.value is not None}
    after = {s.name: s for s in treatment.benchmarks if s.value is not None}
    both = [(before[name], s) for name, s in after.items() if name in before and s.unit == before[name].unit]
    names = {s.name for _, s in both}
    every = dict.fromkeys(s.name for s in (*control.benchmarks, *treatment.benchmarks))
    weighted = [(a, b) for a, b in both if b.weight > 0]
    whole = None
    if weighted:
        old = suite_score([replace(a, weight=b.weight) for a, b in weighted])
        whole = _ratio("score", old, suite_score([b for _, b in weighted]))
    return ScoreComparison(
        control=control_id,
        whole=whole,
        benchmarks=tuple(_ratio(b.name, a, b) for a, b in both),
        left_out=tuple(name for name in every if name not in names),
    )


def doubts_about(control: Run, treatment: Run) -> tuple[Note, ...]:
    """Benchmarks of both runs whose launches were disturbed, or ran under different conditions."""
    others = {r.benchmark.name: r for r in control.results}
    found = []
    for after in treatment.results:
        before = others.get(after.benchmark.name)
        if before is not None and before.counted and after.counted:
            why = undecided(after.counted) or undecided(before.counted) or unlike(before.counted, after.counted)
            found += [why.about(after.benchmark.name)] if why else []
    return tuple(found)


def _ratio(name: str, a: BenchmarkScore | SuiteScore, b: BenchmarkScore | SuiteScore) -> ScoreRatio:
    assert a.value is not None
    assert b.value is not None
    return ScoreRatio(name=name, control=a.value, treatment=b.value)


def benchmark_score(result: Result, *, weight: float | None = None, workers: int | None = None) -> BenchmarkScore:
    """The sum of its processes' medians after warm-up; over several launches, the median of those."""
    benchmark = result.benchmark
    memory = headline_of(result.counted)
    blank = BenchmarkScore(
        name=benchmark.name,
        status=result.status,
        weight=benchmark.weight if weight is None else weight,
        overlap=result.overlap,
        peak_bytes=_largest(result.counted, memory) if memory else None,
        peak_metric=memory,
        gpu_peak_bytes=_largest(result.counted, "gpu.memory"),
        devices=len({(_node(x), device) for x in result.counted for device in x.devices}),
    )
    if result.status is not Status.OK:
        return replace(blank, why=why(result))
    metric = scored_metric(result)
    if metric is None:
        times = [x.duration_s for x in result.counted if x.duration_s is not None]
        took = f"; a launch takes {format_duration(statistics.median(times))}" if times else ""
        return replace(blank, why=f"it has no rate to score{took}")
    together = _together(result.counted, metric, workers)
    every = [value for values in together for value in values]
    if not every or not all(math.isfinite(v) and v > 0 for v in every):
        return replace(blank, metric=metric, why=f"{metric} is not a positive number in every launch")
    sums = [math.fsum(values) for values in together]
    value = statistics.median(sums)
    seats = _seats(result, together)
    units = dict.fromkeys(m.unit for x in result.counted for m in _measured(x, metric))
    if len(units) > 1:
        return replace(blank, metric=metric, why=f"its launches measured in {' and '.join(map(str, units))}")
    return replace(
        blank,
        value=value,
        interval=interval_of_median(sums),
        metric=metric,
        unit=next(iter(units), None),
        median=statistics.median(every),
        processes=max(map(len, together)),
        joules_per_item=_joules_per_item(result.counted, metric, workers),
        seats=seats,
    )


def scored_metric(result: Result) -> str | None:
    """`rate`, else `throughput`, else the first requested metric for which higher is better, rates first."""
    counted = result.counted
    for metric in ("rate", "throughput"):
        if counted and all(_measured(x, metric) for x in counted):
            return metric
    asked = [spec.name for spec in result.benchmark.metrics if spec.required]
    found = [m for x in counted[:1] for m in x.measurements if m.metric in asked and m.direction is Direction.HIGHER]
    found.sort(key=lambda m: asked.index(m.metric))
    found.sort(key=lambda m: not (m.unit or "").endswith(("/s", "/sec", "/second")))
    return next((m.metric for m in found if all(_measured(x, m.metric) for x in counted)), None)


def process_value(launch: Launch, metric: str, workers: int | None = None) -> float:
    """The value of a process; of one with several ranks, their sum."""
    return math.fsum(launch_value(m, workers) for m in _measured(launch, metric))


def _measured(launch: Launch, metric: str) -> list[Measurement]:
    """The measurement of the whole process, else those of its ranks."""
    found = [m for m in launch.measurements if m.metric == metric and m.samples]
    whole = [m for m in found if "rank" not in m.labels]
    return whole[:1] or found


def _together(launches: Sequence[Launch], metric: str, workers: int | None) -> list[list[float]]:
    """The values of the processes of each launch, in the order the launches ran."""
    return [[process_value(x, metric, workers) for x in jobs] for jobs in by_position(launches).values()]


def _seats(result: Result, together: Sequence[Sequence[float]]) -> tuple[Seat, ...]:
    """By number in the launch; launches with another number of processes than the first are ignored."""
    count = len(together[0])
    columns = [[values[place] for values in together if len(values) == count] for place in range(count)]
    medians = [statistics.median(column) for column in columns]
    first = [x.devices for x in result.counted if x.position == min(y.position for y in result.counted)]
    own = [d[0] for d in first if len(d) == 1]
    named = [f"D{device}" for device in own] if len(own) == len(set(own)) == count else list(map(str, range(count)))
    best = max(medians)
    return tuple(Seat(name=n, value=v, relative=v / best) for n, v in zip(named, medians, strict=True))


def _node(launch: Launch) -> str | None:
    """The machine it ran on, if there are several; each counts its devices from 0."""
    return next((m.labels["node"] for m in launch.measurements if "node" in m.labels), None)


def _largest(launches: Sequence[Launch], metric: str) -> float | None:
    return max(
        (max(m.samples) for x in launches for m in x.measurements if m.metric == metric and m.samples), default=None
    )


def _joules_per_item(launches: Sequence[Launch], metric: str, workers: int | None) -> float | None:
    """Joules of all devices for each item of all processes: by the driver's counter (`energy.item`) where every process
    has it, else watts over items per second. A shared device counts once.

    None if the rate counts steps or calls instead of items.
    """
    if any(m.unit in ("steps/s", "calls/s") for x in launches for m in x.measurements if m.metric == metric):
        return None
    found = []
    for jobs in by_position(launches).values():
        rates = [process_value(x, metric, workers) for x in jobs]
        counted = [m.samples[0] for x in jobs if (m := x.measurement("energy.item")) is not None and m.samples]
        devices = [device for x in jobs for device in _watts(x)]
        if len(counted) == len(jobs) and len(set(devices)) == len(devices):
            found.append(math.fsum(each * rate for each, rate in zip(counted, rates, strict=True)) / math.fsum(rates))
        elif devices:
            watts = {device: value for x in jobs for device, value in _watts(x).items()}
            found.append(math.fsum(watts.values()) / math.fsum(rates))
    return statistics.median(found) if found else None


def _watts(launch: Launch) -> dict[tuple[str | None, str | None], float]:
    """By node and device."""
    return {
        (m.labels.get("node"), m.labels.get("device")): launch_value(m)
        for m in launch.measurements
        if m.metric == "gpu.power" and m.samples
    }
