"""A roofline: what benchmarks reached, under the highest that the machine's measured peaks allow."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from benchwright.core.results.efficiency import Peak


class RoofPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark: FLOP a byte and FLOP/s, and the roof above it. `limit`: which roof that is, MEMORY or a precision."""

    benchmark: str
    intensity: float
    achieved: float
    kind: str  # the precision of most of its arithmetic
    roof: float
    limit: str

    @property
    def share(self) -> float:
        """Of the roof; more than 1 where caches serve what was counted as moved."""
        return self.achieved / self.roof


class Roofline(msgspec.Struct, frozen=True, kw_only=True):
    """The roofs of processors or devices, and the benchmarks under them."""

    place: str
    memory: Peak
    arithmetic: Mapping[str, Peak]  # by precision
    points: tuple[RoofPoint, ...]
