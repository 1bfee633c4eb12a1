"""A benchmark's metric over runs of one machine and setting, and where it changed."""

from __future__ import annotations

import msgspec

from benchwright.core.comparison import Verdict
from benchwright.core.metric import Direction


class HistoryPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One run's value. `commit`: of the code, if it is known; `doubt`: why this run does not decide."""

    run: str
    uid: str
    started: str
    value: float
    revision: str = ""  # for people: branch and commit
    commit: str | None = None
    commit_time: str | None = None
    doubt: str | None = None


class HistoryChange(msgspec.Struct, frozen=True, kw_only=True):
    """From point `place` on, the metric is `ratio` times what it was. It came after the run `last_before`, with `first_after`
    at the latest: those may be further apart than the runs beside `place`. `settled`: later runs will not move it.

    `drifting`: a trend, which no single run made: it began at `place` and brought the metric from `before` to `after` at point `end`,
    the last one if it goes on. It is `settled` if it has ended.
    """

    place: int
    end: int
    last_before: int
    first_after: int
    before: float
    after: float
    ratio: float | None  # None: from 0
    confidence: float
    verdict: Verdict
    settled: bool
    drifting: bool = False


class BenchmarkHistory(msgspec.Struct, frozen=True, kw_only=True):
    """`setting`: what distinguishes it from other series of the same benchmark and metric."""

    benchmark: str
    metric: str
    labels: dict[str, str]
    unit: str | None
    direction: Direction
    machine: str
    host: str
    setting: dict[str, str]
    points: tuple[HistoryPoint, ...]
    changes: tuple[HistoryChange, ...] = ()

    @property
    def trusted(self) -> int:
        return sum(point.doubt is None for point in self.points)

    def commits(self, change: HistoryChange) -> tuple[str | None, str | None]:
        """The commits of the runs before and after a change, or at the beginning and the end of a trend."""
        first, last = (change.place, change.end) if change.drifting else (change.last_before, change.first_after)
        return self.points[first].commit, self.points[last].commit
