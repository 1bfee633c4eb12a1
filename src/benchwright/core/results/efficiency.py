"""Efficiency: the arithmetic a benchmark did or the bytes it moved, as a share of the machine's measured peak."""

from __future__ import annotations

import msgspec

from benchwright.core.note import Note

FLOPS, BYTES = "flops", "bytes"
CPU, DEVICE = "cpu", "device"
FEWER_CORES = 0.5  # a peak measured on less than this share of a benchmark's cores does not apply to it
TOLERATED = 1.05  # a larger share is impossible: clocks and the noise of a peak explain less


class Work(msgspec.Struct, frozen=True):
    """What was counted, so that only like is compared with like."""

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
