"""The hint seam: commands and options of another tool that do not exist here, and what to use instead.

Entry-point group: `benchwright.hints`. Hints are loaded only after a command line was refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from benchwright.core.errors import BrokenPlugin
from benchwright.core.registry import Registry

ENTRY_POINT_GROUP = "benchwright.hints"


class Hints(Protocol):
    """Hints for users of another tool. A hint is the second half of a sentence: `no such option: --runs; use --repeat N`."""

    def instead_of_command(self, words: Sequence[str]) -> str | None:
        """The hint for a command line that begins with `words`, at least one; None if the tool has no such command."""
        ...

    def instead_of_option(self, name: str) -> str | None:
        """The hint for an option, dashes included; None if the tool has no such option."""
        ...


HINTS: Registry[Callable[[], Hints]] = Registry(ENTRY_POINT_GROUP, "list of hints")


def hint_for_command(words: Sequence[str]) -> str | None:
    """The first hint that any tool has for these words."""
    return next((hint for hints in _all() if (hint := hints.instead_of_command(words))), None)


def hint_for_option(name: str) -> str | None:
    """The first hint that any tool has for this option."""
    return next((hint for hints in _all() if (hint := hints.instead_of_option(name))), None)


def _all() -> Iterator[Hints]:
    return (
        made() for _, made in HINTS.load_all() if not isinstance(made, BrokenPlugin)
    )  # `bw doctor` names broken ones
