"""The user's working tree as a commit of its own, so that it is checked out and built as any other revision."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from benchwright.core.errors import CannotMeasure, InvalidInput
from benchwright.core.numbers.quantities import format_bytes
from benchwright.regress.repository import SLOW_S, CommandFailed, Commit, GitRepository, call_git

_MOST_NEW_BYTES = 64 << 20  # of files that git does not know yet: more are data, and would be copied
_NOBODY = {"NAME": "benchwright", "EMAIL": "benchwright@localhost"}


def working_tree_commit(repository: GitRepository) -> Commit:
    """The commit that holds the working tree as it is, new files too, without those that git ignores.

    Nothing of the user's is changed: neither index nor branches. The same tree gives the same commit, HEAD if that has it.
    """
    head = repository.commit("HEAD")
    try:
        with tempfile.TemporaryDirectory() as folder:
            tree = _tree(repository, Path(folder) / "index")
        if tree == _git(repository, "rev-parse", "HEAD^{tree}"):
            return head
        when = f"{int(head.time.timestamp())} +0000"
        who = {f"GIT_{role}_{name}": value for role in ("AUTHOR", "COMMITTER") for name, value in _NOBODY.items()}
        who |= {f"GIT_{role}_DATE": when for role in ("AUTHOR", "COMMITTER")}
        message = f"{head.subject}, with uncommitted changes"
        made = _git(repository, "commit-tree", tree, "-p", head.hash, "-m", message, env=who)
        return repository.commit(made)
    except CommandFailed as error:
        raise CannotMeasure(f"{repository.root}: the working tree cannot be read: {error}") from None


def _tree(repository: GitRepository, index: Path) -> str:
    new = _git(repository, "ls-files", "--others", "--exclude-standard", "-z").split("\0")
    size = sum(os.path.getsize(path) for name in new if os.path.isfile(path := repository.root / name))
    if size > _MOST_NEW_BYTES:
        raise InvalidInput(
            f"{repository.root} has {format_bytes(size)} of files that git does not know",
            where="--treatment",
            remedy="ignore them (.gitignore), or name a commit: --treatment HEAD",
        )
    env = {"GIT_INDEX_FILE": str(index)}
    _git(repository, "read-tree", "HEAD", env=env)
    _git(repository, "add", "--all", "--", ".", env=env)
    return _git(repository, "write-tree", env=env)


def _git(repository: GitRepository, *words: str, env: dict[str, str] | None = None) -> str:
    return call_git(*words, folder=repository.root, within_s=SLOW_S, env=env).strip()
