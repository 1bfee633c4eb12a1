"""Which folder the names of a target are relative to, where `--repo-dir` names a repository elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec.structs import replace

from benchwright.app.resolve import shipped_file
from benchwright.app.run import RunOrder


def standing_in(root: Path, order: RunOrder) -> RunOrder:
    """Files are looked up from here, then in the repository; commands run in the repository, unless the user stands
    somewhere in it."""
    options = order.options
    top, here = os.path.realpath(root), os.path.realpath(os.getcwd())
    if here == top or here.startswith(top + os.sep):
        return order
    targets = tuple(_found(target, top) for target in options.targets)
    inside = all(os.path.realpath(target).startswith(top + os.sep) for target in targets)
    cwd = top if options.cwd is None and inside else options.cwd
    return replace(order, options=replace(options, targets=targets, cwd=cwd))


def _found(target: str, root: str) -> str:
    """A file that is neither here nor comes with benchwright is one of the commits', if not yet or no longer of the user's
    own tree."""
    file = target.partition("::")[0]
    return target if os.path.exists(file) or shipped_file(target) != target else os.path.join(root, target)
