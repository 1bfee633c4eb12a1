"""How a Mercurial working tree differs from a commit."""

from __future__ import annotations

from benchwright.core.results.provenance import Repository
from benchwright.core.secrets.redact import redact_text
from benchwright.runs.provenance.git_state import call, digests, when

_TEMPLATE = "{node} {date|hgdate} {branch}"


def mercurial_state(root: str, base: str | None, deadline: float) -> Repository | None:
    """None if there is no hg, or no commit yet."""
    found = call(["hg", "log", "--rev", ".", "--template", _TEMPLATE], root, deadline)
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
        changes=None if listed is None else digests(root, listed),
        branch=redact_text(branch),
        time=when(seconds),
        modified=bool(listed) if base == head and listed is not None else None,
    )


def _changed(root: str, base: str, deadline: float) -> bytes | None:
    return call(
        ["hg", "status", "--modified", "--added", "--removed", "--deleted", "--no-status", "--print0", "--rev", base],
        root,
        deadline,
    )
