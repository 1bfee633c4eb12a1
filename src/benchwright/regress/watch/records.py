"""What is kept and shown of each commit that was watched."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

import msgspec

from benchwright.core.metric import Direction
from benchwright.core.results.comparison import Effect, Verdict
from benchwright.regress.repository import Commit


class RunType(str, Enum):
    """Why a commit is measured; the label `run_type` of the run."""

    BENCHMARK = "benchmark"
    VERIFY = "verify"  # a second time, since the first looked bad
    REGRESS = "regress"  # a third time, since the second did too: its figures are not biased by having been selected


class CommitOutcome(str, Enum):
    """How a commit came out. The value is what people read."""

    REGRESSED = "regressed"
    BROKEN = "broken"  # its programs fail where the control's do not
    BUILD_FAILED = "build failed"
    NOT_CONFIRMED = "not confirmed"  # it looked bad once
    INCONCLUSIVE = "inconclusive"
    IMPROVED = "improved"
    SAME = "same"
    SAME_COMMIT = "A/A"  # compared with itself
    MEASURED = "measured"  # compared with nothing


FAILURES = frozenset({CommitOutcome.REGRESSED, CommitOutcome.BROKEN, CommitOutcome.BUILD_FAILED})


class EffectRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One metric of one benchmark. `ratio`: treatment ÷ control. `called`: a regression that was confirmed.
    `since`: the commit that was called first, if it was an earlier one."""

    benchmark: str
    metric: str
    ratio: float
    verdict: Verdict
    direction: Direction
    labels: dict[str, str] = {}
    low: float | None = None
    high: float | None = None
    called: bool = False
    since: str | None = None
    beside: bool = False  # memory and the like: not what the benchmark is about

    @property
    def key(self) -> EffectKey:
        return (self.benchmark, self.metric, tuple(sorted(self.labels.items())))

    @property
    def worst(self) -> float:
        """How much worse it may be, as a factor: the far end of the interval."""
        ends = [self.ratio if end is None else end for end in (self.low, self.high)]
        return max(ends) if self.direction is not Direction.HIGHER else 1 / min(ends)

    @property
    def least(self) -> float:
        """How much worse it is at least."""
        ends = [self.ratio if end is None else end for end in (self.low, self.high)]
        return min(ends) if self.direction is not Direction.HIGHER else 1 / max(ends)


EffectKey = tuple[str, str, tuple[tuple[str, str], ...]]


class RunMade(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was made of a commit."""

    run_type: RunType
    run: str  # its id


class CommitRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the journal and of `watch --json`. Times are in UTC."""

    version: int = 1  # of this format
    commit: str
    commit_time: str
    subject: str
    outcome: CommitOutcome
    ended: str  # when
    place: str = ""  # the platform or device, where there are several
    control: str | None = None
    control_time: str | None = None
    control_is: str = ""  # first commit of its week, --base-commit…
    runs: tuple[RunMade, ...] = ()
    effects: tuple[EffectRecord, ...] = ()
    broken: tuple[str, ...] = ()  # benchmarks that fail in the treatment only, and why
    notes: tuple[str, ...] = ()
    log: str | None = None  # of a build that failed

    @property
    def called(self) -> tuple[EffectRecord, ...]:
        """Regressions that this commit is the first to show."""
        return tuple(effect for effect in self.effects if effect.called and effect.since is None)


def record_of_effect(effect: Effect) -> EffectRecord:
    interval = effect.interval
    return EffectRecord(
        benchmark=effect.benchmark,
        metric=effect.metric,
        ratio=effect.ratio,
        verdict=effect.verdict,
        direction=effect.direction,
        labels=effect.labels,
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        beside=effect.beside,
    )


def time_of(commit: Commit) -> str:
    return commit.time.strftime("%Y-%m-%dT%H:%M:%SZ")


class EarlierCall(msgspec.Struct, frozen=True, kw_only=True):
    """A regression that an earlier commit was called for, against the same control."""

    commit: str
    effect: EffectRecord


def calls_against(records: Iterable[CommitRecord], control: Commit, place: str = "") -> dict[EffectKey, EarlierCall]:
    """What earlier commits were called for. One that came out well since is forgotten: it was repaired."""
    found: dict[EffectKey, EarlierCall] = {}
    for record in records:
        if record.control != control.hash or record.place != place:
            continue
        for effect in record.effects:
            if effect.called and effect.since is None:
                found[effect.key] = EarlierCall(commit=record.commit, effect=effect)
            elif effect.verdict in (Verdict.SAME, Verdict.IMPROVED):
                found.pop(effect.key, None)
    return found
