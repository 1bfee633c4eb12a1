"""The statistics that a test asks for, of all measured samples: percentiles interpolate linearly, and
the standard deviation is the population's."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Mapping, Sequence

from benchwright.core.aggregates import percentile
from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.run import Result
from benchwright.core.status import Status
from benchwright.kinds.spec.observers.records import number_in
from benchwright.kinds.spec.observers.series import in_our_unit

ALWAYS = "p50"
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?|100)")


def _mad(values: Sequence[float]) -> float:
    middle = percentile(values, 50)
    return percentile([abs(value - middle) for value in values], 50)


def _cv(values: Sequence[float]) -> float:
    mean = statistics.fmean(values)
    return statistics.pstdev(values) / mean if mean else math.nan


_NAMED: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean,
    "median": lambda values: percentile(values, 50),
    "min": min,
    "max": max,
    "stdev": statistics.pstdev,
    "MAD": _mad,
    "cv": _cv,
}


def check_statistics(names: Sequence[str], *, where: str | None = None, line: int | None = None) -> None:
    """InvalidInput for a name that is no statistic."""
    for name in names:
        if name not in _NAMED and not _PERCENTILE.fullmatch(name):
            remedy = did_you_mean(name, _NAMED) or f"use {', '.join(_NAMED)} or a percentile such as p95"
            raise InvalidInput(f"'{name}' is not a statistic", where=where, line=line, remedy=remedy)


def statistic(name: str, values: Sequence[float]) -> float:
    """Of at least one value."""
    known = _NAMED.get(name)
    return known(values) if known is not None else percentile(values, float(name.removeprefix("p")))


def printed_summary(records: Sequence[Mapping[str, object]]) -> dict[str, float]:
    """The program's own statistics, in the unit it printed, from what was noted about one metric in each launch.

    Of several launches only statistics that follow from theirs: the mean by their numbers of runs, the extremes, and the standard
    deviation about the common mean. Empty unless every launch printed some.
    """
    found = [_numbers_in(record.get("summary")) for record in records]
    if not found or not all(found):
        return {}
    if len(found) == 1:
        return found[0]
    runs = [number_in(record.get("num_runs")) or 1.0 for record in records]
    shared = [name for name in found[0] if all(name in each for each in found)]
    columns = {name: [each[name] for each in found] for name in shared}
    figures: dict[str, float] = {name: min(columns[name]) for name in ("p0", "min") if name in columns}
    figures |= {name: max(columns[name]) for name in ("p100", "max") if name in columns}
    if "mean" in columns:
        figures["mean"] = mean = _weighted(columns["mean"], runs)
        if "stdev" in columns:
            squares = [s**2 + (m - mean) ** 2 for s, m in zip(columns["stdev"], columns["mean"], strict=True)]
            figures["stdev"] = math.sqrt(_weighted(squares, runs))
    return {name: figures[name] for name in shared if name in figures}


def _numbers_in(summary: object) -> dict[str, float]:
    if not isinstance(summary, Mapping):
        return {}
    return {str(name): n for name, value in summary.items() if (n := number_in(value)) is not None}


def _weighted(values: Sequence[float], weights: Sequence[float]) -> float:
    return math.fsum(v * w for v, w in zip(values, weights, strict=True)) / math.fsum(weights)


def statistics_of(result: Result, names: Sequence[str], metrics: Sequence[str]) -> dict[str, dict[str, float]]:
    """By metric and name, of the samples of all launches that count, or as the program printed them; p50 always."""
    wanted = list(dict.fromkeys([*names, ALWAYS]))
    launches = [launch for launch in result.launches if launch.status is Status.OK and not launch.warmup]
    found: dict[str, dict[str, float]] = {}
    for metric in metrics:
        samples = [s for launch in launches for m in launch.measurements if m.metric == metric for s in m.samples]
        records = [r for launch in launches for r in launch.facts.get("records") or () if r.get("as") == metric]
        own = _in_our_unit(printed_summary(records), str(records[0].get("unit") or "")) if records else {}
        if own:
            found[metric] = {name: own[name] for name in wanted if name in own}
        elif samples and all(map(math.isfinite, samples)):
            found[metric] = {name: float(statistic(name, samples)) for name in wanted}
    return {metric: figures for metric, figures in found.items() if figures}


def _in_our_unit(summary: Mapping[str, float], unit: str) -> dict[str, float]:
    return {name: value if name == "cv" else in_our_unit(value, unit) for name, value in summary.items()}
