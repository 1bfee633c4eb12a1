"""The known reporters: the built-in ones, and ones of installed packages."""

from __future__ import annotations

from collections.abc import Callable

from benchwright.core.registry import Registry
from benchwright.report.base import ENTRY_POINT_GROUP, Reporter

REPORTERS: Registry[Callable[[], Reporter]] = Registry(ENTRY_POINT_GROUP, "format")


def reporter_named(name: str) -> Reporter:
    """The reporter that `--format` names."""
    return REPORTERS.load(name, where="--format")()
