"""The statistics of FAI-PEP's records: a summary of the values, and how treatment and control differ."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from benchwright.kinds.spec.results.statistics import ALWAYS, statistic

USUAL = ("mean", "p0", "p10", "p50", "p90", "p100", "stdev", "MAD", "cv")
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?|100)")


def summary_of(
    values: Sequence[float], wanted: Sequence[str] = (), printed: Mapping[str, float] = {}
) -> dict[str, float | None]:
    """Statistics the program `printed` itself, else the usual ones, or those `wanted` and the median.

    None where one has no value; empty for no values.
    """
    if printed:
        return dict(printed)
    if not values:
        return {}
    names = dict.fromkeys([*wanted, ALWAYS]) if wanted else USUAL
    return {name: _statistic(name, values) for name in names}


class RecordSide(NamedTuple):
    """The values of treatment or control, and the statistics that its program printed itself."""

    values: Sequence[float]
    printed: Mapping[str, float] = {}

    def statistic(self, name: str) -> float | None:
        return self.printed.get(name) if self.printed else _statistic(name, self.values)


def difference(treatment: RecordSide, control: RecordSide, names: Iterable[str]) -> dict[str, float | None]:
    """Treatment minus control. The p10 of the difference is the treatment's p10 minus the control's p90, and so on."""
    found: dict[str, float | None] = {}
    for name in names:
        match = _PERCENTILE.fullmatch(name)
        ours = treatment.statistic(name)
        theirs = control.statistic(f"p{100 - float(match[1]):g}" if match else name)
        found[name] = None if ours is None or theirs is None else ours - theirs
    return found


def _statistic(name: str, values: Sequence[float]) -> float | None:
    if not all(map(math.isfinite, values)):
        return None
    try:
        found = statistic(name, values)
    except (ValueError, OverflowError):  # one that only its own tool knows, or too large a number
        return None
    return found if math.isfinite(found) else None
