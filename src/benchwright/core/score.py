"""Scores of a suite: one for each benchmark, and one for all."""

from __future__ import annotations

import msgspec

from benchwright.core.efficiency import PeakShare
from benchwright.core.note import Note
from benchwright.core.status import Status
from benchwright.core.summary import Interval


class Seat(msgspec.Struct, frozen=True, kw_only=True):
    """One of the processes that ran together, or its device."""

    name: str  # D0: the process on that device; 0, 1…: its number among the jobs
    value: float  # median over launches of its own median
    relative: float  # to the best seat: 1 is the best


class BenchmarkScore(msgspec.Struct, frozen=True, kw_only=True):
    """Where there is no score, `value` is None and `why` says why: failed benchmarks are shown, not hidden."""

    name: str
    status: Status
    weight: float
    value: float | None = None  # of all processes together
    interval: Interval | None = None  # of `value`, over launches; processes of one launch are not independent
    why: str | None = None
    metric: str | None = None
    unit: str | None = None
    median: float | None = None  # of one process
    processes: int = 0
    devices: int = 0
    overlap: float | None = None
    peak_bytes: float | None = None  # of main memory, by the largest process tree
    peak_metric: str | None = None  # which of the two: memory.peak_pss or memory.peak_rss
    gpu_peak_bytes: float | None = None  # of the fullest device
    joules_per_item: float | None = None  # of the devices
    peak_share: PeakShare | None = None  # of the machine's measured peak
    seats: tuple[Seat, ...] = ()

    @property
    def half_width(self) -> float | None:
        """Half the interval as a fraction of the score."""
        if self.interval is None or not self.value:
            return None
        return (self.interval.high - self.interval.low) / 2 / self.value


class SuiteScore(msgspec.Struct, frozen=True, kw_only=True):
    """The weighted geometric mean of the successful benchmarks, and how many they are.

    It has no interval: one run cannot show how the machine's state, which all its benchmarks share, varies. `expected`
    counts the benchmarks with a weight: `counted` are in `value`, `failed` failed, and the rest was skipped,
    interrupted or is not in the run.
    """

    value: float | None
    benchmarks: tuple[BenchmarkScore, ...]
    expected: int
    counted: int
    failed: int
    price: float | None = None

    @property
    def missing(self) -> int:
        return self.expected - self.counted - self.failed

    @property
    def failure_rate(self) -> float | None:
        """The share of the measured benchmarks that failed."""
        measured = self.counted + self.failed
        return self.failed / measured if measured else None

    @property
    def price_per_score(self) -> float | None:
        return self.price / self.value if self.price is not None and self.value else None


class ScoreRatio(msgspec.Struct, frozen=True, kw_only=True):
    """A benchmark's score, or the suite's, compared with that of another run."""

    name: str
    control: float
    treatment: float

    @property
    def ratio(self) -> float:
        return self.treatment / self.control


class ScoreComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A suite's scores compared with another run's, over the benchmarks that both have.

    The ratios have no intervals: one run of each does not show how runs vary without a change.
    """

    control: str  # run id
    whole: ScoreRatio | None  # None: they have no benchmark in common
    benchmarks: tuple[ScoreRatio, ...]
    left_out: tuple[str, ...] = ()  # benchmarks with a score in only one run
    doubts: tuple[Note, ...] = ()  # benchmarks whose launches cannot decide, or ran under other conditions
