"""The seam of dialects: what specifications written for another tool count on. Entry-point group: `benchwright.spec_dialects`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Protocol

from benchwright.core.errors import BrokenPlugin
from benchwright.core.registry import Registry
from benchwright.kinds.spec.spec_test import SpecTest

ENTRY_POINT_GROUP = "benchwright.spec_dialects"


class SpecDialect(Protocol):
    """Additions of one tool to its tests. Our own names cannot be replaced."""

    def folders(self) -> Mapping[str, str]:
        """Placeholder → folder that comes with the tool. Scripts below it that end in .py are started with Python."""
        ...

    def variables(self, test: SpecTest) -> Mapping[str, str]:
        """Environment variables of a program on a host, unless the test sets them itself."""
        ...

    def command(self, test: SpecTest) -> str | None:
        """The command, with placeholders, of a test that only names its inputs; None if the tool has none for it."""
        ...


DIALECTS: Registry[Callable[[], SpecDialect]] = Registry(ENTRY_POINT_GROUP, "dialect of specifications")


@cache
def dialects() -> tuple[SpecDialect, ...]:
    """Every dialect that can be loaded, ours first."""
    return tuple(made() for _, made in DIALECTS.load_all() if not isinstance(made, BrokenPlugin))


@cache
def dialect_folders() -> Mapping[str, str]:
    """Of all of them; of the same name, the first."""
    return {name: folder for each in reversed(dialects()) for name, folder in each.folders().items()}


def usual_variables(test: SpecTest) -> dict[str, str]:
    """Of all of them; of the same name, the first."""
    return {name: value for each in reversed(dialects()) for name, value in each.variables(test).items()}


def usual_command(test: SpecTest) -> str | None:
    """The first that a dialect has."""
    return next((line for each in dialects() if (line := each.command(test)) is not None), None)
