"""Mercurial repositories, whose revisions are compared."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from benchwright.core.errors import CannotMeasure, InvalidInput
from benchwright.regress.repository import QUICK_S, SLOW_S, CommandFailed, Commit, call

_TEMPLATE = r"{node}\0{date|hgdate}\0{p1node} {p2node}\0{desc|firstline}\0"
_NO_PARENT = "0" * 40
_PLAIN = {"HGPLAIN": "1"}


class HgRepository:
    """A Mercurial repository. Open it with `open`. A worktree is a clone, which shares its files where the disk can."""

    kind = "hg"
    usual_remote = "default"

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def open(cls, folder: str | os.PathLike[str], where: str | None = None) -> HgRepository:
        """The repository that holds `folder`; InvalidInput if there is none."""
        place = Path(folder)
        if not place.is_dir():
            raise InvalidInput(f"there is no folder '{folder}'", where=where, remedy="check the name")
        try:
            return cls(Path(call(["hg", "root"], place, within_s=QUICK_S, env=_PLAIN).rstrip("\n")))
        except CommandFailed as error:
            remedy = "name the folder of a Mercurial repository"
            raise InvalidInput(f"{place}: {error}", where=where, remedy=remedy) from None

    def fetch(self, remote: str) -> None:
        try:
            self._hg("pull", "--quiet", "--", remote, within_s=SLOW_S)
        except CommandFailed as error:
            raise CannotMeasure(f"{self.root}: hg pull {remote}: {error}") from None

    def commit(self, text: str, where: str | None = None) -> Commit:
        try:
            if not text or text.startswith("-"):
                raise CommandFailed("not a changeset, branch, bookmark or tag")
            return self._log(f"last({text})")[0]
        except (CommandFailed, IndexError) as error:
            raise InvalidInput(
                f"there is no changeset '{text}' in {self.root} ({error})",
                where=where,
                remedy="name a changeset, branch, bookmark or tag that hg log shows",
            ) from None

    def commits(self, after: Commit, until: Commit) -> list[Commit]:
        return self._along_first_parents(f"ancestors({until.hash}) - ancestors({after.hash})", until)

    def commits_since(self, time: datetime, until: Commit) -> list[Commit]:
        found = self._along_first_parents(f"ancestors({until.hash})", until)
        return [commit for commit in found if commit.time >= time]

    def remotes(self) -> tuple[str, ...]:
        try:
            return tuple(self._hg("paths", "--quiet").split())
        except CommandFailed as error:
            raise CannotMeasure(f"{self.root}: {error}") from None

    def _along_first_parents(self, revisions: str, until: Commit) -> list[Commit]:
        """The first-parent ancestry of `until` within `revisions`, the oldest first."""
        try:
            known = {each.hash: each for each in self._log(revisions)}
        except CommandFailed as error:
            raise CannotMeasure(f"{self.root}: {error}") from None
        found, place = list[Commit](), until.hash
        while place in known:
            found.append(known[place])
            place = found[-1].parents[0] if found[-1].parents else ""
        return found[::-1]

    def is_ancestor(self, older: Commit, newer: Commit) -> bool:
        try:
            return bool(self._log(f"{older.hash} and ancestors({newer.hash})"))
        except CommandFailed as error:
            raise CannotMeasure(f"{self.root}: {error}") from None

    def default_branch(self, remote: str) -> str:
        """Branches have the same name everywhere."""
        return "default"

    def worktree(self, commit: Commit, place: Path) -> Path:
        try:
            self._hg("clone", "--quiet", "--noupdate", "--", str(self.root), str(place), within_s=SLOW_S)
            call(["hg", "update", "--quiet", "--clean", "--rev", commit.hash], place, within_s=SLOW_S, env=_PLAIN)
        except CommandFailed as error:
            raise CannotMeasure(f"{self.root}: {commit.short} cannot be checked out: {error}") from None
        return place

    def forget_worktrees(self) -> None:
        """A clone is known to nobody."""

    def _log(self, revisions: str) -> list[Commit]:
        """In the order of the repository."""
        printed = self._hg("log", "--rev", f"sort({revisions}, rev)", "--template", _TEMPLATE)
        fields = printed.split("\0")
        return [_commit(*fields[at : at + 4]) for at in range(0, len(fields) - 1, 4)]

    def _hg(self, *words: str, within_s: float = QUICK_S) -> str:
        return call(["hg", *words], self.root, within_s=within_s, env=_PLAIN)


def _commit(hash: str, date: str, parents: str, subject: str) -> Commit:
    time = datetime.fromtimestamp(int(date.partition(" ")[0]), UTC)
    known = tuple(parent for parent in parents.split() if parent != _NO_PARENT)
    return Commit(hash=hash, time=time, parents=known, subject=subject)
