"""What a benchmark did in a second and of what that is how much, in words."""

from __future__ import annotations

from collections.abc import Sequence

from benchwright.domain.efficiency import FLOPS, TOLERATED, Efficiency
from benchwright.domain.quantities import format_prefixed
from benchwright.reporters.one_line import one_line
from benchwright.reporters.score import share_words


def efficiency_words(e: Efficiency) -> str:
    """`3.2 TFLOP/s in bf16, 38 % of the 8.4 TFLOP/s that matmul-bf16 reached`."""
    done = format_prefixed(e.achieved, e.unit)
    if e.work.kind:
        done += f" in {e.work.kind}" if e.work.quantity == FLOPS else f" {e.work.kind.replace('_', ' ')}"
    if e.peak is None:
        return one_line(done)
    where = f" in run {e.peak.run}" if e.peak.run is not None else ""
    peak = f"the {format_prefixed(e.peak.value, e.unit)} that {e.peak.benchmark} reached{where}"
    return one_line(f"{done}, {share_words(e.share)} of {peak}")


def doubts(found: Sequence[Efficiency]) -> list[str]:
    """More arithmetic than another run found possible: one of the two is wrong. In the same run it is a failed check."""
    return [
        f"{efficiency_words(e)}: this machine can do more than that run found, or the arithmetic is claimed too high"
        for e in found
        if e.limit is not None and e.limit.run is not None and e.work.quantity == FLOPS
        if e.achieved > TOLERATED * e.limit.value
    ]
