"""Rooflines: what a benchmark reached, against what the machine's measured peaks allow at its ratio of arithmetic to bytes.

The roof at a ratio is the lower of two: the memory's bandwidth times that ratio, and the peak of the arithmetic. Both were
measured on the same machine; a benchmark that reported only one of them, or whose peaks are not known, has no place under it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from benchwright.core.efficiency import BYTES, FLOPS, MEMORY, Efficiency, Peak, Roofline, RoofPoint


def rooflines(efficiency: Mapping[str, Sequence[Efficiency]]) -> list[Roofline]:
    """One for each place that has a benchmark with both kinds of work and trusted peaks of both."""
    found: dict[str, list[tuple[RoofPoint, Sequence[Efficiency], Efficiency]]] = {}
    for benchmark, each in efficiency.items():
        for place in dict.fromkeys(e.work.place for e in each):
            here = [e for e in each if e.work.place == place]
            arithmetic = [e for e in here if e.work.quantity == FLOPS]
            moved = next((e for e in here if e.work.quantity == BYTES and not e.work.kind), None)
            if moved is not None and arithmetic and all(map(_is_known, (*arithmetic, moved))):
                found.setdefault(place, []).append((_point(benchmark, arithmetic, moved), arithmetic, moved))
    return [_roofline(place, rows) for place, rows in found.items()]


def _is_known(e: Efficiency) -> bool:
    return e.peak is not None and e.peak.doubt is None and not e.peak_had_fewer_cores and e.achieved > 0


def _point(benchmark: str, arithmetic: Sequence[Efficiency], moved: Efficiency) -> RoofPoint:
    achieved = math.fsum(e.achieved for e in arithmetic)
    intensity = achieved / moved.achieved
    # Of several precisions: as long as each takes at its own peak, one after the other.
    least_s = math.fsum(e.achieved / e.peak.value for e in arithmetic if e.peak is not None)
    flat = achieved / least_s
    assert moved.peak is not None
    slope = moved.peak.value * intensity
    kind = max(arithmetic, key=lambda e: e.achieved).work.kind
    return RoofPoint(
        benchmark=benchmark,
        intensity=intensity,
        achieved=achieved,
        kind=kind,
        roof=min(flat, slope),
        limit=MEMORY if slope < flat else kind,
    )


def _roofline(place: str, rows: Sequence[tuple[RoofPoint, Sequence[Efficiency], Efficiency]]) -> Roofline:
    """Of peaks for different numbers of devices the lowest is drawn; every point has its own share."""
    arithmetic: dict[str, Peak] = {}
    memory: Peak | None = None
    for _, each, moved in rows:
        memory = _lower(memory, moved.peak)
        for e in each:
            lower = _lower(arithmetic.get(e.work.kind), e.peak)
            if lower is not None:
                arithmetic[e.work.kind] = lower
    assert memory is not None
    return Roofline(place=place, memory=memory, arithmetic=arithmetic, points=tuple(point for point, _, _ in rows))


def _lower(one: Peak | None, other: Peak | None) -> Peak | None:
    known = [peak for peak in (one, other) if peak is not None]
    return min(known, key=lambda peak: peak.value, default=None)
