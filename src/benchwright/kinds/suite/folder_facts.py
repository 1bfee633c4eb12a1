"""Facts about a benchmark's folder, whoever can read it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from benchwright.core.benchmark import Runner
from benchwright.core.errors import InvalidInput

BENCHFILE = "benchfile.py"  # says how its folder is used; which dialect can read it depends on what is installed
PROGRAMS = ("command", "script")  # keys of an entry that say what to run instead of the folder's main.py
Phase = Literal["install", "prepare", "run"]


class FolderFacts(msgspec.Struct, frozen=True, kw_only=True):
    """File names are relative to the folder. `prepare_script` is None if there is nothing to prepare.

    These are the facts of a folder without a dialect. A dialect's own facts inherit from them.
    """

    folder: str
    requirements: tuple[str, ...] = ("requirements.in",)
    prepare_script: str | None = "prepare.py"
    main_script: str = "main.py"
    notes: tuple[str, ...] = ()

    @property
    def packages(self) -> tuple[str, ...]:
        """Packages the folder needs beyond its requirements files."""
        return ()

    @property
    def local_packages(self) -> tuple[str, ...]:
        """Folders of packages that are installed, too."""
        return ()

    def refusal(self, entry: Mapping[str, object] = {}) -> InvalidInput | None:
        """Why the folder cannot be run as it is, or None."""
        path = os.path.join(self.folder, BENCHFILE)
        if not os.path.isfile(path) or says_how_to_run(entry):
            return None
        remedy = "install a package with a dialect for it, or write `main:` in the suite's entry"
        return InvalidInput("nothing installed can read this file", where=path, remedy=remedy)

    def follows(self, phase: Phase, entry: Mapping[str, Any]) -> bool:
        """Whether the folder has its own way to do this, and the entry does not say what to do instead."""
        return False

    def has_usual_plan(self, entry: Mapping[str, Any]) -> bool:
        """Whether its script runs where the script is, and on the main machine only."""
        return False

    def runner(self, entry: Mapping[str, Any]) -> Runner | None:
        """The program that runs its script, if Python alone does not."""
        return None


def says_how_to_run(entry: Mapping[str, Any]) -> bool:
    """Whether an entry names its own program, script or launcher."""
    plan = entry.get("plan")
    own = any(entry.get(key) for key in PROGRAMS)
    return own or "main" in entry or "launcher" in entry or (isinstance(plan, Mapping) and "launcher" in plan)
