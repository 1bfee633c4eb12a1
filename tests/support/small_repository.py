"""Small git repositories, made on the fly."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

_START_S = 1_700_000_000  # a Tuesday in November 2023


def noise(launches: Path) -> str:
    """For `$(( … ))` in a shell: 0 to 4, another in each launch. They are counted in `launches`: the same numbers every time,
    where numbers of processes would now and then be alike in one of two builds."""
    return f"$(echo >> {launches}; wc -l < {launches}) * 2 % 5"


class SmallRepository:
    """Commits are an hour apart, so that their order and their times are the same everywhere."""

    def __init__(self, folder: Path, *, branch: str = "main") -> None:
        self.folder = folder
        self.time_s = _START_S
        folder.mkdir(parents=True)
        self.git("init", "-q", "-b", branch)

    def git(self, *words: str, folder: Path | None = None) -> str:
        """What git printed, whatever the user's own configuration is."""
        settings = ["user.name=t", "user.email=t@example.test", "commit.gpgsign=false", "protocol.file.allow=always"]
        stamp = f"{self.time_s} +0000"
        env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_COMMITTER_DATE": stamp, "GIT_AUTHOR_DATE": stamp}
        argv = ["git", *(word for setting in settings for word in ("-c", setting)), *words]
        done = subprocess.run(argv, cwd=folder or self.folder, check=True, stdout=subprocess.PIPE, text=True, env=env)
        return done.stdout.strip()

    def commit(self, subject: str, files: Mapping[str, str] | None = None) -> str:
        """Writes `files`, commits everything and returns the hash."""
        for name, text in (files or {}).items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.time_s += 3600
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD")
