"""The time of a call by type of operator."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Sequence

from benchmodels.reports import LOWER, Reports
from benchmodels.runtimes.base import OpTime

SLOWEST = 20
OTHER = "other"


class Operator(NamedTuple):
    """All nodes of one type: their seconds and runs in one call of the model."""

    op: str
    seconds: float
    calls: float


def operators(found: Sequence[OpTime]) -> List[Operator]:
    """Times by operator type, slowest first; beyond the first 20 they are summed as `other`."""
    sums: Dict[str, List[float]] = {}
    for each in found:
        of_kind = sums.setdefault(str(each.op), [0.0, 0.0])
        of_kind[0] += float(each.seconds_per_call)
        of_kind[1] += float(each.calls)
    ordered = sorted((Operator(op, s, n) for op, (s, n) in sums.items()), key=lambda each: (-each.seconds, each.op))
    rest = ordered[SLOWEST:]
    if not rest:
        return ordered
    return [*ordered[:SLOWEST], Operator(OTHER, sum(r.seconds for r in rest), sum(r.calls for r in rest))]


def tell_operators(reports: Reports, found: Sequence[OpTime]) -> None:
    """One figure per operator type: its share of a call, in seconds."""
    for op, seconds, times in operators(found):
        reports.measured("op.time", [seconds], "s", LOWER, {"op": op, "calls": f"{times:g}"})
