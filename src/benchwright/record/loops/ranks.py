"""What the ranks of one launch did together."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchwright.core.measurement import DELIVERED, Measurement
from benchwright.core.metric import Direction

_RATES = ("rate", "step_rate")


def over_ranks(found: Sequence[Measurement], ranks: int) -> list[Measurement]:
    """The launch's own rates: the sum of what each of its `ranks` did, of loops that all of them ran."""
    totals = []
    names = dict.fromkeys(m.metric for m in found if m.metric.rpartition(".")[2] in _RATES and m.source == "loop")
    for metric in names:
        parts = [m for m in found if m.metric == metric and "rank" in m.labels and m.samples]
        if len({m.labels["rank"] for m in parts}) == len(parts) == ranks and len({m.unit for m in parts}) == 1:
            whole = sum(_own(m) for m in parts)
            totals.append(
                Measurement(
                    metric=metric,
                    unit=parts[0].unit,
                    direction=Direction.HIGHER,
                    samples=(whole,),
                    source="loop",
                    aggregate=DELIVERED if parts[0].value is not None else "median",
                    value=whole if parts[0].value is not None else None,
                    labels={"loop": parts[0].labels["loop"], "ranks": str(ranks)},
                )
            )
    return totals


def _own(part: Measurement) -> float:
    if part.value is not None:
        return part.value
    return statistics.fmean(part.samples) if part.aggregate == "average" else statistics.median(part.samples)
