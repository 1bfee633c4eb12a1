"""Processes that a killed benchwright may have left running."""

from __future__ import annotations

import msgspec


class Mark(msgspec.Struct, frozen=True):
    """Identifies the processes of one agent: `token` is in their environment, `group` is their control group."""

    token: str
    group: str | None = None


class Leftovers(msgspec.Struct, frozen=True, kw_only=True):
    """Processes are given as `name (pid)`."""

    ended: tuple[str, ...] = ()
    left: tuple[str, ...] = ()  # could not be ended
    unknown: tuple[str, ...] = ()  # nodes that did not answer
    of_others: tuple[str, ...] = ()  # belong to another agent, which is gone: not ours to end
