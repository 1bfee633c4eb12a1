"""The working trees of git and Mercurial that files are in, and how they differ from a commit. Never takes long."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from benchwright.core.git_command import GIT, LISTING, git_variables
from benchwright.core.results.provenance import Repository
from benchwright.core.secrets.redact import redact_text
from benchwright.runs.provenance.file_digests import digest_of

_PATIENCE_S = 2.0  # for all of them together
_MOST_REPOSITORIES = 4
_MOST_CHANGED = 500
_MOST_FILES = 3  # named of a repository
_SETTINGS = {"HGPLAIN": "1", "HGRCSKIPREPO": "1", "LC_ALL": "C"}  # Mercurial: nothing that the checkout configures
_CHANGED = ("diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty")


def repositories_of(
    folders: Iterable[str],
    bases: Mapping[str, str] | None = None,
    editable: Mapping[str, Sequence[str]] | None = None,
    files: Iterable[str] = (),
) -> tuple[Repository, ...]:
    """Those that hold `folders`; compared with the commits `bases`, by root, where they are known, else with HEAD.

    `files`: named in the command; `editable`: the packages that are installed from a folder. Where those lie in other
    repositories, they come later, in this order.
    """
    deadline = time.monotonic() + _PATIENCE_S
    roots: dict[str, list[str]] = {root: [] for folder in folders if (root := _root_of(folder)) is not None}
    working = set(roots)
    for path in files:
        root = _root_of(os.path.dirname(path))
        if root is not None and root not in working:
            roots.setdefault(root, []).append(os.path.relpath(path, root))
    packages: dict[str, list[str]] = {}
    for folder, names in (editable or {}).items():
        root = _root_of(folder)
        if root is not None and root not in roots:
            packages.setdefault(root, []).extend(names)
    found = (_state(root, (bases or {}).get(root), deadline) for root in [*roots, *packages][:_MOST_REPOSITORIES])
    return tuple(
        msgspec.structs.replace(
            state,
            files=tuple(roots.get(state.root, ())[:_MOST_FILES]),
            packages=tuple(packages.get(state.root, ())),
        )
        for state in found
        if state is not None
    )


def _root_of(folder: str) -> str | None:
    path = Path(folder)
    return next((str(p) for p in (path, *path.parents) if (p / ".git").exists() or (p / ".hg").is_dir()), None)


def _state(root: str, base: str | None, deadline: float) -> Repository | None:
    """None if this is no working tree that git can read, or there is no git."""
    if not os.path.exists(os.path.join(root, ".git")):
        from benchwright.runs.provenance.mercurial_state import mercurial_state

        return mercurial_state(root, base, deadline)
    listed = call(LISTING, root, deadline)
    if listed is None:
        return None
    git = partial(_git, root, deadline, git_variables(os.environ, os.fsdecode(listed), network=False))
    head = git("log", "-1", "--no-show-signature", "--no-color", "--format=%H %ct", "HEAD", "--")
    if not head:
        return None
    at, _, seconds = head.decode().strip().partition(" ")
    if base is None or not git("cat-file", "-e", f"{base}^{{commit}}", silent=b"there"):
        base = at
    changed = git(*_CHANGED, base)
    since_head = changed if base == at else git(*_CHANGED, at)
    return Repository(
        root=root,
        base=base,
        head=at,
        changes=None if changed is None else digests(root, changed),
        branch=_branch(root),
        time=when(seconds),
        modified=None if since_head is None else bool(since_head),
    )


def when(seconds: str) -> str | None:
    """ISO 8601 in UTC, of seconds since 1970."""
    try:
        return datetime.fromtimestamp(int(seconds), UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


def _branch(root: str) -> str | None:
    """Read from git's own file, which costs no process; None if a commit is checked out without a branch."""
    try:
        folder = Path(root, ".git")
        if folder.is_file():  # a worktree or submodule: `gitdir: PATH`
            folder = Path(root, folder.read_text().partition("gitdir: ")[2].strip())
        said = (folder / "HEAD").read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None
    return redact_text(said.removeprefix("ref: refs/heads/")) if said.startswith("ref: refs/heads/") else None


def digests(root: str, listed: bytes) -> dict[str, str] | None:
    names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    if len(names) > _MOST_CHANGED:
        return None
    return {name.encode("utf-8", "replace").decode(): digest_of(os.path.join(root, name)) for name in names}


def _git(
    root: str, deadline: float, variables: Mapping[str, str], *words: str, silent: bytes | None = None
) -> bytes | None:
    """What it printed (`silent` where it prints nothing); None if it failed or took too long."""
    printed = call([*GIT, *words], root, deadline, variables)
    return None if printed is None else printed or silent or b""


def call(argv: Sequence[str], folder: str, deadline: float, variables: Mapping[str, str] | None = None) -> bytes | None:
    """What it printed; None if it failed or took too long. `variables`: its environment, if not that of git without a network."""
    import subprocess

    try:
        done = subprocess.run(
            argv,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**(variables or git_variables(os.environ, network=False)), **_SETTINGS},
            timeout=max(0.05, deadline - time.monotonic()),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
