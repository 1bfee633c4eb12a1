"""What launches of separate runs differ by although nothing was changed: unknown from one run each, so it is allowed for.

One run shows how its own launches wander, but not how far the machine was from where it was an hour before. A difference is
only called if it is larger than both.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from benchwright.analysis.statistics.drift import drift_of

# Clocks, neighbours on the same hardware, temperature, the layout of memory and code: an unchanged program rarely differs
# by more between two runs on a quiet machine, and one step of 5 % between the runs is no verdict.
RUN_TO_RUN = 0.05


class Steadiness(NamedTuple):
    """How launches of one run held still. `wandered`: how far their level moved, as a logarithm; `spread`: the whole range.

    `drift` says in words what was noticed; None if nothing was.
    """

    wandered: float
    spread: float
    drift: str | None


def steadiness(values: Sequence[float]) -> Steadiness:
    """Of one positive value for each launch, in the order they ran."""
    logs = [math.log(v) for v in values]
    # Medians of three: one odd launch is no level, except at the ends, where nothing shows that it was odd.
    levels = [logs[0], *(statistics.median(logs[i : i + 3]) for i in range(len(logs) - 2)), logs[-1]]
    return Steadiness(max(levels) - min(levels), max(logs) - min(logs), _drift(values))


def allowance(sides: Sequence[Steadiness], run_to_run: float | None) -> float:
    """What a difference must exceed, as a logarithm: of a side that drifts, all that its launches ever differed by.

    `run_to_run` is None for what the machine has no part in, such as memory or a loss.
    """
    if run_to_run is None:
        return max((side.spread for side in sides if side.drift), default=0.0)
    return max(math.log1p(run_to_run), *(side.spread if side.drift else side.wandered for side in sides))


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
