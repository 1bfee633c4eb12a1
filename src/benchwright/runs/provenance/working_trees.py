"""The seam of revision control, as far as a run needs it: working trees of systems other than git, which is built in.

Entry-point group: `benchwright.revision_control`; `regress.repository` has the rest of the protocol.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Protocol

from benchwright.core.errors import BrokenPlugin
from benchwright.core.provenance import Repository
from benchwright.core.registry import Registry

ENTRY_POINT_GROUP = "benchwright.revision_control"
GIT_TREE = "git"


class WorkingTrees(Protocol):
    """The working trees of one system."""

    marker: str  # the folder at the root of each of them, such as .svn

    def state(self, root: str, base: str | None, deadline: float) -> Repository | None:
        """How the tree at `root` differs from the commit `base`, or from its own; None if that is not known.

        It has until `deadline`, of time.monotonic().
        """
        ...


WORKING_TREES: Registry[Callable[[], WorkingTrees]] = Registry(ENTRY_POINT_GROUP, "system of revision control")


@cache
def tree_systems() -> dict[str, WorkingTrees]:
    """Every system but git that can be loaded, by its name."""
    return {name: made() for name, made in WORKING_TREES.load_all() if not isinstance(made, BrokenPlugin)}


def nearest_tree(folder: Path) -> tuple[Path, str] | None:
    """The root of the working tree that holds `folder`, and the name of its system."""
    for place in (folder, *folder.parents):
        if (place / ".git").exists():
            return place, GIT_TREE
        for name, system in tree_systems().items():
            if (place / system.marker).is_dir():
                return place, name
    return None
