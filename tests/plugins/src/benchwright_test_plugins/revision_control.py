"""Snapshots: a folder whose `.snapshots` holds a numbered copy of its files for each version."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

from benchwright.core.errors import InvalidInput
from benchwright.core.provenance import Repository
from benchwright.regress.repository import Commit


class Snapshots:
    """What `--repo snapshots` names."""

    marker = ".snapshots"

    def state(self, root: str, base: str | None, deadline: float) -> Repository | None:
        """Whether files have changed since is not known."""
        commits = SnapshotRepository(Path(root)).every()
        if not commits:
            return None
        head = commits[-1].hash
        return Repository(system="snapshots", root=root, base=head, head=head, changes=None)

    def open(self, folder: str | os.PathLike[str], where: str | None = None) -> SnapshotRepository:
        place = Path(os.path.abspath(folder))
        for root in (place, *place.parents):
            if (root / self.marker).is_dir():
                return SnapshotRepository(root)
        raise InvalidInput(f"{place} has no snapshots", where=where, remedy="name another folder")


class SnapshotRepository:
    """Its history is one line, and there is nowhere to fetch from."""

    kind = "snapshots"
    usual_remote = "origin"

    def __init__(self, root: Path) -> None:
        self.root = root

    def every(self) -> list[Commit]:
        """The oldest first."""
        numbers = sorted(int(path.name) for path in (self.root / Snapshots.marker).iterdir() if path.name.isdigit())
        hashes = [f"{number:040d}" for number in numbers]
        times = [datetime.fromtimestamp(self._place(each).stat().st_mtime, UTC) for each in hashes]
        return [
            Commit(hash=each, time=times[at], parents=tuple(hashes[at - 1 : at]), subject=f"snapshot {int(each)}")
            for at, each in enumerate(hashes)
        ]

    def commit(self, text: str, where: str | None = None) -> Commit:
        found = [each for each in self.every() if text in (each.hash, each.hash.lstrip("0"), "HEAD", "newest")]
        if not found:
            raise InvalidInput(f"there is no snapshot '{text}' in {self.root}", where=where, remedy="name its number")
        return found[-1]

    def commits(self, after: Commit, until: Commit) -> list[Commit]:
        return [each for each in self.every() if after.hash < each.hash <= until.hash]

    def commits_since(self, time: datetime, until: Commit) -> list[Commit]:
        return [each for each in self.every() if each.time >= time and each.hash <= until.hash]

    def is_ancestor(self, older: Commit, newer: Commit) -> bool:
        return older.hash <= newer.hash

    def fetch(self, remote: str) -> None:
        pass

    def remotes(self) -> tuple[str, ...]:
        return ()

    def default_branch(self, remote: str) -> str:
        return "newest"

    def worktree(self, commit: Commit, place: Path) -> Path:
        return shutil.copytree(self._place(commit.hash), place)

    def forget_worktrees(self) -> None:
        pass

    def _place(self, hash: str) -> Path:
        return self.root / Snapshots.marker / str(int(hash))
