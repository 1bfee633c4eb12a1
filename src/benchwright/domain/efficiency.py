"""How much arithmetic a benchmark did, or how many bytes it moved, and what share that is of what the machine can do."""

from __future__ import annotations

import msgspec

FLOPS, BYTES = "flops", "bytes"
CPU, DEVICE = "cpu", "device"
TOLERATED = 1.05  # a share above this cannot be true: clocks and the noise of a peak explain less
LEAST_GOT = 0.9  # a peak that had less of its cores shows what was left over by others, and proves nothing


class Work(msgspec.Struct, frozen=True):
    """What is counted, so that only the same is held against each other."""

    quantity: str  # FLOPS or BYTES
    kind: str  # of arithmetic its precision, of bytes which way they go; empty: not said
    place: str  # CPU or DEVICE


class Peak(msgspec.Struct, frozen=True, kw_only=True):
    """The most that was reached in a second, on one device or on the processors of one machine."""

    value: float
    benchmark: str
    run: str | None = None  # its id, if that is another run than the one that is looked at
    got: float = 1.0  # of the time its threads wanted on the cores; 1 on devices


class Efficiency(msgspec.Struct, frozen=True, kw_only=True):
    """Of one kind of work. Peaks are of all that the benchmark ran on together."""

    work: Work
    per_item: float
    achieved: float  # in a second, all processes of a launch together; the median over launches
    peak: Peak | None = None
    limit: Peak | None = None  # that of the fastest precision in which parts of it may be computed

    @property
    def share(self) -> float | None:
        """Of the peak."""
        return self.achieved / self.peak.value if self.peak is not None else None

    @property
    def unit(self) -> str:
        return "FLOP/s" if self.work.quantity == FLOPS else "B/s"
