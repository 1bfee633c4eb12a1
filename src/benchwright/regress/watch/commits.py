"""Which commits are measured next."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.regress.repository import Commit

_HASH = re.compile(r"[0-9a-f]{7,64}", re.ASCII)


class Branch(Protocol):
    """The part of a repository that listing new commits needs."""

    def commit(self, text: str, where: str | None = None) -> Commit: ...

    def commits(self, after: Commit, until: Commit) -> list[Commit]: ...

    def is_ancestor(self, older: Commit, newer: Commit) -> bool: ...


class NewCommits(msgspec.Struct, frozen=True):
    """`commits`: to be measured, the oldest first. `notes`: what a user should know about how they were found."""

    commits: tuple[Commit, ...]
    notes: tuple[str, ...] = ()


def is_hash(text: str) -> bool:
    """Whether it can only be meant as the hash of a commit."""
    return _HASH.fullmatch(text.lower()) is not None


def recorded_commit(branch: Branch, text: str | None) -> Commit | None:
    """The commit that a commit file names; None if it names none of this repository."""
    if text is None or not is_hash(text):
        return None
    try:
        return branch.commit(text)
    except InvalidInput:
        return None


def new_commits(branch: Branch, last: Commit | None, first: Commit | None, tip: Commit, step: int = 1) -> NewCommits:
    """Commits after `last`, the last one finished; without one `first` and its successors, else the tip alone.

    Merged commits are part of their merge. `step`: of the successors, one in so many. InvalidInput if the branch does not
    contain `first`.
    """
    if last is not None:
        following = _following(branch, last, tip)
        return NewCommits(_every(step, following.commits), following.notes)
    if first is None:
        return NewCommits((tip,))
    if not branch.is_ancestor(first, tip):
        raise InvalidInput(
            f"{first.short} is not in the branch, whose newest commit is {tip.short}",
            where="--commit",
            remedy="name its branch with --branch",
        )
    return NewCommits((first, *_every(step, _following(branch, first, tip).commits)))


def _every(step: int, commits: Sequence[Commit]) -> tuple[Commit, ...]:
    return tuple(commits[step - 1 :: step])


def _following(branch: Branch, last: Commit, tip: Commit) -> NewCommits:
    """The commits of the branch that `last` does not contain; also of a branch that was rewritten."""
    if last.hash == tip.hash:
        return NewCommits(())
    commits = branch.commits(last, tip)
    if branch.is_ancestor(last, tip):
        return NewCommits(tuple(commits))
    if not commits:
        return NewCommits((), (f"{last.short} is ahead of the branch, whose newest commit is {tip.short}",))
    gone = f"{last.short} is no longer in the branch, which was rewritten"
    if not commits[0].parents:
        return NewCommits((tip,), (f"{gone} from its first commit on; going on at its newest one",))
    return NewCommits(tuple(commits), (f"{gone}; going on after {commits[0].parents[0][:10]}, the last one in common",))
