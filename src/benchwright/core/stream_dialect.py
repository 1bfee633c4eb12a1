"""The seam of stream dialects: what the lines mean that another tool's instrument writes to the descriptor $DATA_FD.

Entry-point group: `benchwright.stream_dialects`. The agent looks at lines while they come, on any node; the recorder reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from benchwright.core.errors import BrokenPlugin
from benchwright.core.job import Job
from benchwright.core.registry import Registry
from benchwright.core.reported import Reported

ENTRY_POINT_GROUP = "benchwright.stream_dialects"


class Glance(NamedTuple):
    """The part of a line that the supervisor of a running program needs."""

    newest: dict[str, float]  # values to show
    stop_asked: bool = False  # the program was measured enough, and wants to be ended


class StreamDialect(Protocol):
    """How one instrument's lines are read. Only `read` has no default."""

    beside: frozenset[str] = (
        frozenset()
    )  # names of files beside a script that set the instrument up: no scripts themselves

    def read(self, line: str, t: int, reported: Reported) -> None:
        """Adds a line that was seen at `t`; `reported.unread()` for one that cannot be read. Never raises."""
        ...

    def glance(self, line: str) -> Glance | None:
        """None for most lines, and quickly: they come while the program is measured."""
        return None

    def no_rate(self, reported: Reported) -> str:
        """Why a program that should have reported a rate has none, and what to do."""
        return f"no rate came from {reported.dialect}: the program may have failed and still exited with 0; see its log"

    def keeps_rules(self, job: Job, reported: Reported) -> bool:
        """Whether the program knows how many observations are to be measured; else all that it reports count."""
        return True


STREAM_DIALECTS: Registry[Callable[[], StreamDialect]] = Registry(ENTRY_POINT_GROUP, "stream dialect")


def files_beside_scripts() -> frozenset[str]:
    """Of all dialects that can be loaded."""
    found = (each().beside for _, each in STREAM_DIALECTS.load_all() if not isinstance(each, BrokenPlugin))
    return frozenset().union(*found)


def first_installed() -> str | None:
    """The dialect of a program that was given $DATA_FD and nothing else."""
    return next(iter(STREAM_DIALECTS.names()), None)
