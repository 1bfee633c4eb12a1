"""The control that a commit is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Protocol

import msgspec

from benchwright.regress.repository import Commit


class Against(str, Enum):
    """Which commit is the control."""

    WEEK = "week"  # the first of the treatment's week
    PARENT = "parent"  # the one before the treatment


class CommitHistory(Protocol):
    """The part of a repository that choosing a control needs."""

    def commit(self, text: str, where: str | None = None) -> Commit: ...

    def commits_since(self, time: datetime, until: Commit) -> list[Commit]:
        """Commits not before `time`, until a commit, which is the last, the oldest first, along first parents."""
        ...

    def is_ancestor(self, older: Commit, newer: Commit) -> bool: ...


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """`why`: what it is, for people. `is_treatment`: the two sides are the same commit, so any difference is noise."""

    commit: Commit
    why: str
    is_treatment: bool = False


def start_of_week(time: datetime) -> datetime:
    """Monday 00:00 UTC."""
    day = time.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return day - timedelta(days=day.weekday())


def controls(history: CommitHistory, treatment: Commit, against: Against, base: Commit | None) -> Iterator[Control]:
    """The best control first; the others are for where that one cannot be built or run. The last is the treatment itself.

    `base`: the control, if it is later than the one that `against` means.
    """
    for control in _older_controls(history, treatment, against, base):
        if control.commit.hash == treatment.hash:
            break
        yield control
    yield Control(commit=treatment, why="commit itself", is_treatment=True)


def _older_controls(
    history: CommitHistory, treatment: Commit, against: Against, base: Commit | None
) -> Iterator[Control]:
    if against is Against.PARENT:
        yield from _ancestors(history, treatment)
        return
    week = history.commits_since(start_of_week(treatment.time), treatment) or [treatment]
    first, hashes = week[0], [commit.hash for commit in week]
    if base is not None and _is_later(history, base, first, treatment):
        yield Control(commit=base, why="--base-commit")
        week = week[hashes.index(base.hash) + 1 :] if base.hash in hashes else week
    for commit in week:
        yield Control(commit=commit, why="first commit of its week" if commit is first else "later commit of its week")


def _ancestors(history: CommitHistory, treatment: Commit) -> Iterator[Control]:
    commit = treatment
    while commit.parents:
        commit = history.commit(commit.parents[0])
        is_first = commit.hash == treatment.parents[0]
        yield Control(commit=commit, why="commit before it" if is_first else "earlier commit")


def _is_later(history: CommitHistory, base: Commit, first: Commit, treatment: Commit) -> bool:
    """Whether `base` comes after the first commit of the week; never if the treatment is older than it."""
    if base.hash in (first.hash, treatment.hash):
        return True
    if history.is_ancestor(treatment, base):
        return False
    if history.is_ancestor(first, base):
        return True
    return not history.is_ancestor(base, first) and base.time > first.time
