"""What a benchmark did in a second and of what that is how much, in words."""

from __future__ import annotations

from collections.abc import Sequence

from benchwright.core.numbers.quantities import format_prefixed
from benchwright.core.results.efficiency import FLOPS, TOLERATED, Efficiency
from benchwright.report.score.screen import share_words
from benchwright.report.text.one_line import one_line


def efficiency_words(e: Efficiency) -> str:
    """`3.2 TFLOP/s in bf16, 38 % of the 8.4 TFLOP/s that matmul-bf16 sustained here`, or why there is no share."""
    done = format_prefixed(e.achieved, e.unit)
    if e.work.kind:
        done += f" in {e.work.kind}" if e.work.quantity == FLOPS else f" {e.work.kind.replace('_', ' ')}"
    if e.peak is None:
        return one_line(done)
    if e.share is None:
        return one_line(f"{done}; no share of peak: {e.why_no_share}")
    where = f" in run {e.peak.run}" if e.peak.run is not None else ""
    on = f" on {e.peak.cores:.1f} cores" if e.peak.cores is not None else ""
    peak = f"the {format_prefixed(e.peak.value, e.unit)} that {e.peak.benchmark} sustained here{on}{where}"
    return one_line(f"{done}, {share_words(e.share)} of {peak}")


def doubts(found: Sequence[Efficiency]) -> list[str]:
    """Why there is no share although a peak was measured. More arithmetic than another run found possible: one of the two
    is wrong. In the same run that is a failed check."""
    said = []
    for e in found:
        if e.peak is None or e.why_no_share is None:
            continue
        beyond = e.limit is not None and e.limit.run is not None and e.achieved > TOLERATED * e.limit.value
        more = ""
        if beyond and e.work.quantity == FLOPS:
            more = f" in run {e.limit.run}" if e.limit is not None else ""
            more += "; this machine can do more than that run found, or the arithmetic is claimed too high"
        said.append(one_line(f"no share of peak: {e.why_no_share}{more}"))
    return said
