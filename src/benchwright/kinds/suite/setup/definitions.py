"""Benchmark folders that are cloned from a git repository."""

from __future__ import annotations

import os

from benchwright.core.benchmark import BenchmarkFolder
from benchwright.core.git_command import GIT
from benchwright.environments.built import remove
from benchwright.environments.locking import locked
from benchwright.environments.tools import Tools


class CannotClone(Exception):
    """git could not get a definition."""


def clone(folder: BenchmarkFolder, tools: Tools, *, anew: bool = False) -> str | None:
    """Clones the definition aside, then puts it in its place; returns its commit, or None if it was there already."""
    assert folder.git is not None
    os.makedirs(os.path.dirname(folder.path), exist_ok=True)
    with locked(folder.path + ".lock", stopped=tools.is_stopped) as lock:
        if os.path.isdir(folder.path) and not anew:
            return None
        aside = folder.path + ".part"
        log = folder.path + ".log"
        for leftover in (aside, log):
            remove(leftover)
        branch = ["--branch", folder.branch] if folder.branch else []
        argv = [*GIT, "clone", "--recurse-submodules", "--depth=1", *branch, "--", folder.git, aside]
        environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
        if tools.run(argv, log=log, env=environment, keep_open=(lock,)) != 0:
            remove(aside)
            raise CannotClone(f"{folder.git}: {_last_line(log)}")
        _replace(aside, folder.path)
        return _commit(folder.path)


def _replace(aside: str, place: str) -> None:
    before = place + ".before"
    remove(before)
    if os.path.isdir(place):
        os.rename(place, before)
    os.rename(aside, place)
    remove(before)


def _commit(folder: str) -> str:
    """Of the clone's HEAD, as far as its files tell."""
    try:
        with open(os.path.join(folder, ".git", "HEAD"), encoding="utf-8") as file:
            head = file.read().strip()
        if head.startswith("ref: "):
            with open(os.path.join(folder, ".git", head.removeprefix("ref: ")), encoding="utf-8") as file:
                head = file.read().strip()
        return head
    except OSError:
        return "unknown"


def _last_line(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        lines = [line.strip() for line in file if line.strip()]
    return next((line for line in reversed(lines) if line.startswith(("fatal:", "error:"))), lines[-1])
