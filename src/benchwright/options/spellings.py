"""The spelling seam: options as users of another tool write them, and what they are called here.

Entry-point group: `benchwright.spellings`. They are loaded only for an option that a command does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from benchwright.core.errors import BrokenPlugin
from benchwright.core.registry import Registry

ENTRY_POINT_GROUP = "benchwright.spellings"


class Spellings(Protocol):
    """Our names for the options of another tool."""

    def spelt(self, command: str, flag: str) -> tuple[str, ...] | None:
        """Our words for an option of `command`, dashes included; what follows is the value of the last.

        Empty: it is a flag that asks for what always happens. None: the tool has no such option.
        """
        ...


SPELLINGS: Registry[Callable[[], Spellings]] = Registry(ENTRY_POINT_GROUP, "list of spellings")


def spelt_here(command: str, flag: str, known: Collection[str]) -> tuple[str, ...] | None:
    """The first spelling whose words are options that the command has."""
    for _, made in SPELLINGS.load_all():
        found = None if isinstance(made, BrokenPlugin) else made().spelt(command, flag)  # `bw doctor` names broken ones
        if found is not None and set(found) <= set(known):
            return found
    return None
