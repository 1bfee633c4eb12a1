"""How much separate runs differ without a change: one run each does not show it, so it is allowed for.

A run shows how its own launches drift, but not how the machine differs from an hour before. Only a difference larger than
both counts.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from benchwright.analysis.statistics.drift import drift_of
from benchwright.analysis.statistics.ratio_tests import FEWEST_TOGETHER

# Clocks, other tenants, temperature, the layout of memory and code: on a quiet machine an unchanged program rarely differs
# by more than this between two runs, so a single step of 5 % between them gets no verdict.
RUN_TO_RUN = 0.05


class Steadiness(NamedTuple):
    """How stable a run's launches were. `wandered`: how far their level moved, as a logarithm; `spread`: the whole range.

    `drift` describes a detected drift; None if there is none.
    """

    wandered: float
    spread: float
    drift: str | None


def steadiness(values: Sequence[float]) -> Steadiness:
    """From one positive value for each launch, in the order they ran."""
    logs = [math.log(v) for v in values]
    # Medians of three: a single outlier is not a level, except at the ends, where it cannot be recognised.
    levels = [logs[0], *(statistics.median(logs[i : i + 3]) for i in range(len(logs) - 2)), logs[-1]]
    return Steadiness(max(levels) - min(levels), max(logs) - min(logs), _drift(values))


def steadinesses(rows: Sequence[Sequence[float]]) -> list[Steadiness]:
    """`steadiness` of many; the same to the last bit."""
    if len(rows) < FEWEST_TOGETHER:
        return [steadiness(values) for values in rows]
    from benchwright.analysis.statistics import many_rows  # numpy

    found: dict[int, Steadiness] = {}
    for places in many_rows.by_length([(row,) for row in rows]).values():
        same = [rows[place] for place in places]
        logs = many_rows.logs_of(same)
        spreads = logs.max(axis=1) - logs.min(axis=1)
        columns = (many_rows.level_ranges(logs), spreads, many_rows.may_drift(same))
        for place, wandered, spread, may_drift in zip(places, *(each.tolist() for each in columns), strict=True):
            found[place] = Steadiness(wandered, spread, _drift(rows[place]) if may_drift else None)
    return [found.get(place) or steadiness(values) for place, values in enumerate(rows)]


def allowance(sides: Sequence[Steadiness], run_to_run: float | None) -> float:
    """The least difference that counts, as a logarithm; for a side that drifts, the whole range of its launches.

    `run_to_run` is None for metrics that the machine does not affect, such as memory or a loss.
    """
    if run_to_run is None:
        return max((side.spread for side in sides if side.drift), default=0.0)
    return max([math.log1p(run_to_run), *(side.spread if side.drift else side.wandered for side in sides)])


def _drift(values: Sequence[float]) -> str | None:
    drift = drift_of(values)
    if drift is None:
        return None
    by = _percent(drift.change)
    if drift.kind == "step":
        return f"shifted by {by} after launch {drift.place} of {len(values)}"
    if drift.kind == "trend":
        return f"drifted by {by} from its first launches to its last"
    return f"wandered by {by}: neighbouring launches are correlated"


def _percent(share: float) -> str:
    return f"{share * 100:+.1f} %"
