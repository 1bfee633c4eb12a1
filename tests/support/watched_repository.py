"""A remote repository with a program in it, and a clone of it that is watched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from command_line import CommandLine
from small_repository import SmallRepository, noise

# By its unit a size: other load on this machine does not disturb it. Named alone: no other verdict can be wrong by chance.
METRIC = ("--metric", "ms[MB,lower]=kv:ms", "--metric", "ms")


class WatchedRepository:
    """`remote` is where commits are made, `clone` what `--repo-dir` names."""

    def __init__(self, folder: Path, bw: CommandLine) -> None:
        self.remote = SmallRepository(folder / "remote")
        self.clone = folder / "clone"
        self.bw = bw
        self.metric = METRIC
        self.commits: list[str] = []
        self._launches = folder / "launches"
        self.commit(1000, {"bench.sh": self.printing("$(cat value)")})
        self.remote.git("clone", "-q", str(self.remote.folder), str(self.clone))

    def printing(self, value: object) -> str:
        """A program that prints its number instead of taking time: verdicts on it do not depend on the machine."""
        return f'echo "ms=$(( {value} + {noise(self._launches)} ))"\n'

    def commit(self, value: int, files: dict[str, str] | None = None, subject: str | None = None) -> str:
        """A commit whose program prints `value`, more or less."""
        subject = subject or f"value {value}"
        self.commits.append(self.remote.commit(subject, {"value": f"{value}\n", **(files or {})}))
        return self.commits[-1]

    def words(self, *options: str) -> list[str]:
        return ["watch", "--repo-dir", str(self.clone), "--repeat", "6", *self.metric, *options, "--", "sh", "bench.sh"]

    def watch(self, *options: str, code: int = 0) -> list[dict[str, Any]]:
        """The records of the commits that were measured."""
        done = self.bw(*self.words("--json", *options), code=code)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def pending(self, *options: str, code: int = 0) -> list[dict[str, Any]]:
        """The commits that would be measured."""
        return self.watch("--list", *options, code=code)
