"""Mercurial, which FAI-PEP's repo driver watches, too: how a working tree differs from a commit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchwright.core.git_command import git_variables
from benchwright.core.provenance import Repository
from benchwright.core.secrets import redact_text
from benchwright.runs.provenance import provenance

if TYPE_CHECKING:  # every run asks for the state of working trees; few compare revisions
    from benchwright.compat.faipep.hg_repository import HgRepository

_HEAD = "{node} {date|hgdate} {branch}"


class Mercurial:
    """The version control of `--repo hg`."""

    marker = ".hg"

    def state(self, root: str, base: str | None, deadline: float) -> Repository | None:
        """None if there is no hg, or no commit yet."""
        found = _asked(["log", "--rev", ".", "--template", _HEAD], root, deadline)
        if not found:
            return None
        head, seconds, _, branch = found.decode("utf-8", "replace").split(" ", 3)
        listed = None if base is None or base == head else _changed(root, base, deadline)
        if listed is None:
            base, listed = head, _changed(root, head, deadline)
        return Repository(
            system="hg",
            root=root,
            base=base or head,
            head=head,
            changes=None if listed is None else provenance.digests(root, listed),
            branch=redact_text(branch),
            time=provenance.when(seconds),
            modified=bool(listed) if base == head and listed is not None else None,
        )

    def open(self, folder: str | os.PathLike[str], where: str | None = None) -> HgRepository:
        from benchwright.compat.faipep.hg_repository import HgRepository

        return HgRepository.open(folder, where)


def _changed(root: str, base: str, deadline: float) -> bytes | None:
    words = ["status", "--modified", "--added", "--removed", "--deleted", "--no-status", "--print0", "--rev", base]
    return _asked(words, root, deadline)


def _asked(words: Sequence[str], root: str, deadline: float) -> bytes | None:
    """With nothing that the checkout configures."""
    variables = git_variables(os.environ, network=False) | {"HGPLAIN": "1", "HGRCSKIPREPO": "1"}
    return provenance.call(["hg", *words], root, deadline, variables)
