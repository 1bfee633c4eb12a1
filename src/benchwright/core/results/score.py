"""What a suite's benchmarks come to: one score for each, and one for all."""

from __future__ import annotations

import msgspec

from benchwright.core.note import Note
from benchwright.core.results.summary import Interval
from benchwright.core.status import Status


class Seat(msgspec.Struct, frozen=True, kw_only=True):
    """One process of those that ran together, or the device it had."""

    name: str  # D0: the process of that device; 0, 1…: the place among the jobs
    value: float  # median over launches of its own median
    relative: float  # to the best seat: 1 is the best


class BenchmarkScore(msgspec.Struct, frozen=True, kw_only=True):
    """`value` is None, and `why` says why, where there is no score: a failed benchmark is stated, not hidden."""

    name: str
    status: Status
    weight: float
    value: float | None = None  # what all processes did together
    interval: Interval | None = None  # of `value`, over launches; processes of one launch share what is peculiar to it
    why: str | None = None
    metric: str | None = None
    unit: str | None = None
    median: float | None = None  # of one process
    processes: int = 0
    devices: int = 0
    overlap: float | None = None
    peak_bytes: float | None = None  # main memory of the largest process tree
    peak_metric: str | None = None  # which of the two: memory.peak_pss or memory.peak_rss
    gpu_peak_bytes: float | None = None  # of the fullest device
    joules_per_item: float | None = None  # of the devices
    of_peak: float | None = None  # share of what the machine was measured to be able to
    seats: tuple[Seat, ...] = ()

    @property
    def half_width(self) -> float | None:
        """Half the interval as a fraction of the score."""
        if self.interval is None or not self.value:
            return None
        return (self.interval.high - self.interval.low) / 2 / self.value


class SuiteScore(msgspec.Struct, frozen=True, kw_only=True):
    """The weighted geometric mean of what succeeded, never without how much that was.

    It has no interval: what all benchmarks of a run share, the machine's level of that hour, one run cannot show. `expected` counts the benchmarks with a weight; of them `counted` are in `value`, `failed` failed, and the rest was
    skipped, interrupted or is not in the run.
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
        """Of those that were measured, the share that failed."""
        measured = self.counted + self.failed
        return self.failed / measured if measured else None

    @property
    def price_per_score(self) -> float | None:
        return self.price / self.value if self.price is not None and self.value else None


class ScoreRatio(msgspec.Struct, frozen=True, kw_only=True):
    """A benchmark's score, or that of all, divided by that of another run."""

    name: str
    control: float
    treatment: float

    @property
    def ratio(self) -> float:
        return self.treatment / self.control


class ScoreComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A suite's scores against those of another run, over the benchmarks that both have.

    Ratios without intervals: what differs between two runs without a change is not known from one of each.
    """

    control: str  # run id
    whole: ScoreRatio | None  # None: there is nothing both have
    benchmarks: tuple[ScoreRatio, ...]
    left_out: tuple[str, ...] = ()  # those that only one of them has a score for
    doubts: tuple[Note, ...] = ()  # benchmarks whose launches cannot decide, or ran under other conditions


class MilabenchRow(msgspec.Struct, frozen=True, kw_only=True):
    """A benchmark as milabench's report shows it. `perf`, `std` and `sem` are NaN if there are no rates."""

    name: str
    n: int
    fail: int
    ngpu: int
    perf: float
    std: float
    sem: float
    peak_memory_mib: float | None
    score: float
    weight: float
    enabled: bool
    per_device: dict[str, float] = {}  # device → mean

    @property
    def counts(self) -> float:
        """The weight in the score of all."""
        return self.weight if self.enabled else 0.0


class MilabenchScore(msgspec.Struct, frozen=True, kw_only=True):
    """milabench's figures for a run; `value` is NaN if no benchmark has a weight."""

    value: float
    rows: tuple[MilabenchRow, ...]
    failure_rate: float
    price: float | None = None

    @property
    def passed(self) -> bool:
        return self.failure_rate <= 0.01

    @property
    def price_per_score(self) -> float | None:
        return self.price / self.value if self.price is not None and self.value > 0 else None
