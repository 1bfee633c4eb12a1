"""The statistics of FAI-PEP's records, by their definitions: linear percentiles, the standard deviation of the population."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from benchwright.core.numbers.aggregates import aggregate, percentile

USUAL = ("mean", "p0", "p10", "p50", "p90", "p100", "stdev", "MAD", "cv")
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?|100)")


def summary_of(values: Sequence[float], wanted: Sequence[str] = ()) -> dict[str, float | None]:
    """The usual statistics, or those `wanted` and the median; None where one has no value. Empty for no values."""
    if not values:
        return {}
    names = dict.fromkeys([*wanted, "p50"]) if wanted else USUAL
    return {name: _finite(_statistic(name, values)) for name in names}


def difference(treatment: Sequence[float], control: Sequence[float], names: Sequence[str]) -> dict[str, float | None]:
    """Treatment minus control. The p10 of the difference is the treatment's p10 minus the control's p90, and so on."""
    found: dict[str, float | None] = {}
    for name in names:
        match = _PERCENTILE.fullmatch(name)
        other = f"p{100 - float(match[1]):g}" if match else name
        found[name] = _finite(_statistic(name, treatment) - _statistic(other, control))
    return found


def percentiles_in(summary: Mapping[str, object]) -> list[str]:
    """The statistics of a summary that have a difference: percentiles, mean and MAD."""
    return [name for name in summary if name in ("mean", "MAD") or _PERCENTILE.fullmatch(name)]


def _statistic(name: str, values: Sequence[float]) -> float:
    if match := _PERCENTILE.fullmatch(name):
        return percentile(values, float(match[1]))
    if name == "mean":
        return aggregate("average", values)
    if name == "stdev":
        return _deviation(values)
    if name == "MAD":
        middle = percentile(values, 50)
        return percentile([abs(value - middle) for value in values], 50)
    if name == "cv":
        mean = aggregate("average", values)
        return _deviation(values) / mean if mean else math.nan
    return math.nan  # a statistic that only its own tool knows


def _deviation(values: Sequence[float]) -> float:
    mean = aggregate("average", values)
    return math.sqrt(aggregate("average", [(value - mean) * (value - mean) for value in values]))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
