"""The statistics that a test asks for, with FAI-PEP's meaning: of all measured samples; percentiles interpolate linearly, and
the standard deviation is the population's."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Sequence

from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.numbers.aggregates import percentile
from benchwright.core.run import Result
from benchwright.core.status import Status

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


def statistics_of(result: Result, names: Sequence[str], metrics: Sequence[str]) -> dict[str, dict[str, float]]:
    """By metric and name, of the samples of all launches that count; p50 always."""
    wanted = list(dict.fromkeys([*names, ALWAYS]))
    found: dict[str, dict[str, float]] = {}
    for metric in metrics:
        samples = [
            sample
            for launch in result.launches
            if launch.status is Status.OK and not launch.warmup
            for m in launch.measurements
            if m.metric == metric
            for sample in m.samples
        ]
        if samples and all(map(math.isfinite, samples)):
            found[metric] = {name: float(statistic(name, samples)) for name in wanted}
    return found
