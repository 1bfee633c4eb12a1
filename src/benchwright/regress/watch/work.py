"""Interfaces of a watch: how to pull, build and measure, when to stop, and whom to notify."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from benchwright.regress.builds import BuiltRevision
from benchwright.regress.repository import Commit
from benchwright.regress.watch.control import Against, Control
from benchwright.regress.watch.examination import Measured
from benchwright.regress.watch.records import CommitRecord, EffectKey, RunType


class WatchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """`step`: measure one commit in so many. `compare`: with a control. `overlap`: build the next commit while one is
    measured."""

    step: int = 1
    compare: bool = True
    against: Against = Against.WEEK
    interval_s: float | None = None
    overlap: bool = False


class WatchedRepository(Protocol):
    """The part of a repository that a watch needs."""

    def commit(self, text: str, where: str | None = None) -> Commit: ...

    def commits(self, after: Commit, until: Commit) -> list[Commit]: ...

    def commits_since(self, time: datetime, until: Commit) -> list[Commit]: ...

    def is_ancestor(self, older: Commit, newer: Commit) -> bool: ...


class Pulled(msgspec.Struct, frozen=True, kw_only=True):
    """`tip`: the newest commit of the branch. `first`: where to begin if nothing has been finished yet. `base`: the control,
    where it is later than the week's."""

    tip: Commit
    first: Commit | None = None
    base: Commit | None = None


class WatchPlace(msgspec.Struct, frozen=True):
    """Where a commit is measured. `name`: for people, empty if there is only one. `platform`: chooses the build."""

    name: str = ""
    platform: str | None = None


class BuiltCommit(msgspec.Struct, frozen=True):
    """A commit, and what was built of it."""

    commit: Commit
    built: BuiltRevision


class WatchTrial(msgspec.Struct, frozen=True, kw_only=True):
    """One run to make. Without a control nothing is compared. `regressed`: what to mark as such in a regress run."""

    treatment: BuiltCommit
    control: BuiltCommit | None
    place: WatchPlace
    purpose: RunType = RunType.BENCHMARK
    regressed: tuple[EffectKey, ...] = ()


class WatchWork(Protocol):
    """The slow parts of a watch."""

    def pull(self) -> Pulled:
        """Raises CannotMeasure if the remote cannot be reached, InvalidInput if there is no such branch or commit."""
        ...

    def places(self) -> Sequence[WatchPlace]: ...

    def build(self, commit: Commit, platform: str | None) -> BuiltRevision:
        """Raises RevisionNotBuilt."""
        ...

    def stop_building(self) -> None:
        """Ends builds that run in another thread."""
        ...

    def measure(self, trial: WatchTrial) -> Measured:
        """Raises CannotMeasure, UnknownMetric."""
        ...


class WatchClock(Protocol):
    """Time, and whether the watch was asked to stop; `wait` returns early once it was."""

    def now(self) -> float: ...

    def wait(self, seconds: float) -> None: ...

    def is_stopping(self) -> bool: ...


class WatchObserver(Protocol):
    """Hears of what goes on."""

    def on_commits(self, commits: Sequence[Commit]) -> None:
        """These are new."""

    def on_commit(self, commit: Commit, control: Control | None, place: WatchPlace) -> None:
        """It is built, and about to be measured."""

    def on_record(self, record: CommitRecord) -> None:
        """It is finished."""

    def on_waiting(self, seconds: float, *, nothing_new: bool) -> None:
        """Nothing is done for a while."""

    def on_note(self, text: str) -> None: ...

    def on_trouble(self, text: str) -> None: ...
