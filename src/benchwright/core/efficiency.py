"""Efficiency: the arithmetic a benchmark did or the bytes it moved, as a share of the machine's measured peak."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from benchwright.core.note import Note

FLOPS, BYTES = "flops", "bytes"
MEMORY = "memory"  # a limit, as a precision is
CPU, DEVICE = "cpu", "device"
FEWER_CORES = 0.5  # a peak measured on less than this share of a benchmark's cores does not apply to it
TOLERATED = 1.05  # a larger share is impossible: clocks and the noise of a peak explain less


class Work(msgspec.Struct, frozen=True):
    """A kind of work, so that only like is compared with like."""

    quantity: str  # FLOPS or BYTES
    kind: str  # the precision of arithmetic, the direction of bytes; empty: unknown
    place: str  # CPU or DEVICE


class Peak(msgspec.Struct, frozen=True, kw_only=True):
    """The highest rate sustained on one device, or on one machine's processors: measured, not from a data sheet."""

    value: float
    benchmark: str
    run: str | None = None  # the run it was measured in, if not this one
    cores: float | None = None  # kept busy, on processors, if known
    doubt: Note | None = None  # why it is not the machine's peak: others used its cores, its clock was lowered…


class PeakShare(msgspec.Struct, frozen=True):
    """Of the peak that limits a benchmark most. `limit`: MEMORY or a precision; None if only one of the two is known."""

    value: float
    limit: str | None = None

    @property
    def is_of_memory(self) -> bool:
        return self.limit == MEMORY

    def is_limited_by(self, work: Work) -> bool:
        if self.is_of_memory:
            return work.quantity == BYTES and not work.kind
        return self.limit is not None and work.quantity == FLOPS and work.kind == self.limit


class Efficiency(msgspec.Struct, frozen=True, kw_only=True):
    """The efficiency at one kind of work. Peaks are those of everything the benchmark ran on, together."""

    work: Work
    per_item: float
    achieved: float  # per second, by all processes of a launch together; the median over launches
    peak: Peak | None = None
    limit: Peak | None = None  # the peak of the fastest precision that parts of it may use
    cores: float | None = None  # kept busy, on processors, if known
    why_no_share: str | None = None

    @property
    def share(self) -> float | None:
        """The share of the peak; None without a trustworthy peak."""
        return None if self.why_no_share is not None else self.ratio

    @property
    def ratio(self) -> float | None:
        """Achieved over peak, trustworthy or not."""
        return self.achieved / self.peak.value if self.peak is not None else None

    @property
    def peak_had_fewer_cores(self) -> bool:
        """Whether the peak was measured on too few cores to apply."""
        if self.cores is None or self.peak is None or self.peak.cores is None or self.cores < 1:
            return False
        return self.peak.cores < FEWER_CORES * self.cores

    @property
    def unit(self) -> str:
        return "FLOP/s" if self.work.quantity == FLOPS else "B/s"


def share_of_peak(found: Sequence[Efficiency]) -> PeakShare | None:
    """The share of the time that its work takes at peak: of arithmetic, or of bytes if these take longer.

    None if a peak is unknown. More bytes than the memory can move came from caches: then they do not limit it.
    """
    arithmetic, moved = ([e for e in found if e.work.quantity == quantity] for quantity in (FLOPS, BYTES))
    if not arithmetic:
        moving = _together(moved)
        return None if moving is None else PeakShare(moving)
    computing = _together(arithmetic)
    moving = _together([e for e in moved if not e.work.kind])  # others go between host and device
    if computing is None:
        return None
    if moving is not None and moving > computing:
        return PeakShare(moving, MEMORY)
    kind = max(arithmetic, key=lambda e: e.achieved).work.kind
    return PeakShare(computing, kind or None if moving is not None else None)


def _together(found: Sequence[Efficiency]) -> float | None:
    known = [e.share for e in found if e.share is not None]
    return math.fsum(known) if known and len(known) == len(found) else None


# A roofline: what benchmarks reached, under the highest that the machine's measured peaks allow.


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
