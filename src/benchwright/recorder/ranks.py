"""What the ranks of one launch did together."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchwright.domain.measurement import Measurement
from benchwright.domain.metric import Direction


def over_ranks(found: Sequence[Measurement], ranks: int) -> list[Measurement]:
    """The launch's own rate: the sum of what each of its `ranks` did, where all of them told."""
    totals = []
    for metric in ("rate", "throughput"):
        parts = [m for m in found if m.metric == metric and "rank" in m.labels and m.samples]
        if len(parts) == ranks:
            whole = sum(statistics.median(m.samples) for m in parts)
            totals.append(
                Measurement(
                    metric=metric,
                    unit=parts[0].unit,
                    direction=Direction.HIGHER,
                    samples=(whole,),
                    source="loop",
                    labels={"loop": parts[0].labels["loop"], "ranks": str(ranks)},
                )
            )
    return totals
