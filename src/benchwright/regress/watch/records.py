"""The record of each watched commit, as stored and shown."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Literal

import msgspec

from benchwright.core.comparison import Effect, Verdict
from benchwright.core.metric import Direction
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
    NOT_MEASURED = "not measured"  # nothing could be had; the watch goes on, and comes back to it
    ACKNOWLEDGED = "acknowledged"  # it regressed, which somebody has accepted
    INCONCLUSIVE = "inconclusive"
    IMPROVED = "improved"
    SAME = "same"
    SAME_COMMIT = "A/A"  # compared with itself
    MEASURED = "measured"  # compared with nothing


FAILURES = frozenset({CommitOutcome.REGRESSED, CommitOutcome.BROKEN, CommitOutcome.BUILD_FAILED})


class EffectRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One metric of one benchmark. `ratio`: treatment ÷ control. `called`: a regression that was confirmed.
    `since`: the commit that was called first, if it was an earlier one. `acknowledged`: somebody has accepted it."""

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
    acknowledged: bool = False
    beside: bool = False  # memory and the like: not what the benchmark is about

    @property
    def key(self) -> EffectKey:
        return (self.benchmark, self.metric, tuple(sorted(self.labels.items())))

    @property
    def factor(self) -> float:
        """How much worse it is, by the estimate."""
        return self.ratio if self.direction is not Direction.HIGHER else 1 / self.ratio

    def excludes(self, other: EffectRecord) -> bool:
        """Whether it is certainly smaller than the other was reported to be."""
        return self.low is not None and self.high is not None and self.worst < other.factor

    def continues(self, other: EffectRecord) -> bool:
        """Whether it may be the same loss: neither worse nor better than the other may have been."""
        return self.least <= other.worst and not self.excludes(other)

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

    purpose: RunType = msgspec.field(name="run_type")
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


class CallMark(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the journal: what somebody said about the regressions that a commit was called for before."""

    version: int = 1
    mark: Literal["forgotten", "acknowledged"]
    commit: str
    marked: str  # when

    def on(self, record: CommitRecord) -> CommitRecord:
        """A record made before, with this mark."""
        if record.commit != self.commit:
            return record
        change = {"called": False} if self.mark == "forgotten" else {"acknowledged": True}
        effects = [msgspec.structs.replace(e, **change) if e in record.called else e for e in record.effects]
        return msgspec.structs.replace(record, effects=tuple(effects))


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
    """Calls of earlier commits; `records` in the order of their commits.

    A call ends with a commit that came out well, or whose interval excludes it: it was repaired.
    """
    found: dict[EffectKey, EarlierCall] = {}
    for record in records:
        if record.control != control.hash or record.place != place:
            continue
        for effect in record.effects:
            known = found.get(effect.key)
            if effect.called and effect.since is None:
                if known is not None and effect.continues(known.effect):
                    continue  # it was measured before the commit that is to blame
                found[effect.key] = EarlierCall(commit=record.commit, effect=effect)
            elif effect.verdict in (Verdict.SAME, Verdict.IMPROVED) or (known and effect.excludes(known.effect)):
                found.pop(effect.key, None)
    return found
