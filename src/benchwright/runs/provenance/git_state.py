"""The git working trees that files are in, and how they differ from a commit. Never takes long: skips a huge one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchwright.core.results.provenance import Repository
from benchwright.runs.provenance.file_digests import digest_of

_PATIENCE_S = 2.0  # for all of them together
_MOST_REPOSITORIES = 4
_MOST_CHANGED = 500
_SETTINGS = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def repositories_of(folders: Iterable[str], bases: Mapping[str, str] | None = None) -> tuple[Repository, ...]:
    """Those that hold `folders`; compared with the commits `bases`, by root, where they are known, else with HEAD."""
    deadline = time.monotonic() + _PATIENCE_S
    roots = dict.fromkeys(root for folder in folders if (root := _root_of(folder)) is not None)
    found = (_state(root, (bases or {}).get(root), deadline) for root in list(roots)[:_MOST_REPOSITORIES])
    return tuple(state for state in found if state is not None)


def _root_of(folder: str) -> str | None:
    path = Path(folder)
    return next((str(place) for place in (path, *path.parents) if (place / ".git").exists()), None)


def _state(root: str, base: str | None, deadline: float) -> Repository | None:
    """None if this is no working tree that git can read, or there is no git."""
    head = _git(root, deadline, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if not head:
        return None
    at = head.decode().strip()
    if base is None or not _git(root, deadline, "cat-file", "-e", f"{base}^{{commit}}", silent=b"there"):
        base = at
    listed = _git(root, deadline, "diff", "--name-only", "-z", "--no-renames", "--ignore-submodules=dirty", base)
    changes = None if listed is None else _digests(root, listed)
    return Repository(root=root, base=base, head=at, changes=changes)


def _digests(root: str, listed: bytes) -> dict[str, str] | None:
    names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    if len(names) > _MOST_CHANGED:
        return None
    return {name.encode("utf-8", "replace").decode(): digest_of(os.path.join(root, name)) for name in names}


def _git(root: str, deadline: float, *words: str, silent: bytes | None = None) -> bytes | None:
    """What it printed (`silent` where it prints nothing); None if it failed or took too long."""
    import subprocess

    try:
        done = subprocess.run(
            ["git", "-C", root, "-c", "core.fsmonitor=false", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **_SETTINGS},
            timeout=max(0.05, deadline - time.monotonic()),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (done.stdout or silent or b"") if done.returncode == 0 else None
