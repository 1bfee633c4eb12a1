"""How much arithmetic a benchmark did, or how many bytes it moved, and what share that is of what the machine can do."""

from __future__ import annotations

import msgspec

from benchwright.core.note import Note

FLOPS, BYTES = "flops", "bytes"
CPU, DEVICE = "cpu", "device"
FEWER_CORES = 0.5  # a peak on less than this part of the cores that another used is no peak for that one
TOLERATED = 1.05  # a share above this cannot be true: clocks and the noise of a peak explain less


class Work(msgspec.Struct, frozen=True):
    """What is counted, so that only like is compared with like."""

    quantity: str  # FLOPS or BYTES
    kind: str  # of arithmetic its precision, of bytes which way they go; empty: not said
    place: str  # CPU or DEVICE


class Peak(msgspec.Struct, frozen=True, kw_only=True):
    """The most that was sustained on one device or on the processors of one machine: measured, not from a data sheet."""

    value: float
    benchmark: str
    run: str | None = None  # its id, if that is another run than the one that is looked at
    cores: float | None = None  # that it kept busy, where it ran on the processors and that is known
    doubt: Note | None = None  # why it is not the machine's peak: others used its cores, its clock was lowered…


class Efficiency(msgspec.Struct, frozen=True, kw_only=True):
    """Of one kind of work. Peaks are of all that the benchmark ran on together."""

    work: Work
    per_item: float
    achieved: float  # in a second, all processes of a launch together; the median over launches
    peak: Peak | None = None
    limit: Peak | None = None  # that of the fastest precision in which parts of it may be computed
    cores: float | None = None  # that it kept busy, where it ran on the processors and that is known
    why_no_share: str | None = None

    @property
    def share(self) -> float | None:
        """Of the peak; None where there is none that can be trusted."""
        return None if self.why_no_share is not None else self.ratio

    @property
    def ratio(self) -> float | None:
        """Achieved over peak, whether that can be trusted or not."""
        return self.achieved / self.peak.value if self.peak is not None else None

    @property
    def peak_had_fewer_cores(self) -> bool:
        """Whether the peak was measured on so many fewer cores that it is none for this."""
        if self.cores is None or self.peak is None or self.peak.cores is None or self.cores < 1:
            return False
        return self.peak.cores < FEWER_CORES * self.cores

    @property
    def unit(self) -> str:
        return "FLOP/s" if self.work.quantity == FLOPS else "B/s"
