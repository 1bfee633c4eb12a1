"""The statistics of FAI-PEP's records: a summary of the values, and how treatment and control differ."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from benchwright.kinds.spec.results.statistics import ALWAYS, statistic

USUAL = ("mean", "p0", "p10", "p50", "p90", "p100", "stdev", "MAD", "cv")
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?|100)")


def summary_of(values: Sequence[float], wanted: Sequence[str] = ()) -> dict[str, float | None]:
    """The usual statistics, or those `wanted` and the median; None where one has no value. Empty for no values."""
    if not values:
        return {}
    names = dict.fromkeys([*wanted, ALWAYS]) if wanted else USUAL
    return {name: _statistic(name, values) for name in names}


def difference(treatment: Sequence[float], control: Sequence[float], names: Sequence[str]) -> dict[str, float | None]:
    """Treatment minus control. The p10 of the difference is the treatment's p10 minus the control's p90, and so on."""
    found: dict[str, float | None] = {}
    for name in names:
        match = _PERCENTILE.fullmatch(name)
        ours = _statistic(name, treatment)
        theirs = _statistic(f"p{100 - float(match[1]):g}" if match else name, control)
        found[name] = None if ours is None or theirs is None else ours - theirs
    return found


def with_difference(summary: Mapping[str, object]) -> list[str]:
    """The statistics of a summary that have a difference: percentiles, mean and MAD."""
    return [name for name in summary if name in ("mean", "MAD") or _PERCENTILE.fullmatch(name)]


def _statistic(name: str, values: Sequence[float]) -> float | None:
    if not all(map(math.isfinite, values)):
        return None
    try:
        found = statistic(name, values)
    except (ValueError, OverflowError):  # one that only its own tool knows, or too large a number
        return None
    return found if math.isfinite(found) else None
