"""The seam of variables: $BENCHWRIGHT_BASE and the like, as another tool's users have set them. Entry-point group:
`benchwright.variables`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from benchwright.core.errors import BrokenPlugin
from benchwright.core.registry import Registry

ENTRY_POINT_GROUP = "benchwright.variables"
_OURS = "BENCHWRIGHT_"


class VariableNames(Protocol):
    """The variables of one tool that mean what ours mean."""

    @property
    def prefix(self) -> str:
        """The prefix of its names, where ours is BENCHWRIGHT_."""
        ...

    @property
    def names(self) -> frozenset[str]:
        """Names without the prefix: BASE, CONFIG, SYSTEM or DATA_DIR."""
        ...


VARIABLES: Registry[Callable[[], VariableNames]] = Registry(ENTRY_POINT_GROUP, "set of variables")


def values_of(variable: str, environment: Mapping[str, str]) -> Iterator[str]:
    """The value of our own `variable`, then of other tools' variables; empty ones are left out."""
    if value := environment.get(variable):
        yield value
    name = variable.removeprefix(_OURS)
    if not any(key.endswith(f"_{name}") and not key.startswith(_OURS) for key in environment):
        return  # nearly always: nothing has to be loaded
    for _, made in VARIABLES.load_all():
        if isinstance(made, BrokenPlugin):  # `bw doctor` names it
            continue
        other = made()
        if name in other.names and (value := environment.get(f"{other.prefix}{name}")):
            yield value


def value_of(variable: str, environment: Mapping[str, str]) -> str | None:
    """The first of them."""
    return next(values_of(variable, environment), None)
