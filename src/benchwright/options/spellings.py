"""The spelling seam: options as users of another tool write them, and what they are called here.

Entry-point group: `benchwright.spellings`. They are loaded only for an option or a subcommand that a command does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol, runtime_checkable

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


@runtime_checkable
class SpellsCommands(Spellings, Protocol):
    """Spellings that know commands too."""

    def spelt_command(self, words: Sequence[str]) -> tuple[str, ...] | None:
        """Our words for a command and its subcommand; None if the tool has no such command."""
        ...


SPELLINGS: Registry[Callable[[], Spellings]] = Registry(ENTRY_POINT_GROUP, "list of spellings")


def spelt_here(command: str, flag: str, known: Collection[str]) -> tuple[str, ...] | None:
    """The first spelling whose words are options that the command has."""
    for _, made in SPELLINGS.load_all():
        found = None if isinstance(made, BrokenPlugin) else made().spelt(command, flag)  # `bw doctor` names broken ones
        if found is not None and set(found) <= set(known):
            return found
    return None


def spelt_command_here(words: Sequence[str]) -> tuple[str, ...] | None:
    """Our words for another tool's command and subcommand."""
    made = (made() for _, made in SPELLINGS.load_all() if not isinstance(made, BrokenPlugin))
    found = (each.spelt_command(words) for each in made if isinstance(each, SpellsCommands))
    return next(filter(None, found), None)
