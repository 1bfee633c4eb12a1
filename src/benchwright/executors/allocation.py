"""Nodes that a scheduler has lent, and the file in the folder of a run that names them: whoever resumes it ends them."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from benchwright.core.whole_file import write_whole

FILE = "allocations.json"


class Allocation(msgspec.Struct, frozen=True, kw_only=True):
    """`number` and `name` of its job. `nodes`: empty while it waits. `others`: by node, jobs of others there."""

    scheduler: str
    number: str
    name: str
    nodes: tuple[str, ...] = ()
    released: bool = False
    others: dict[str, tuple[str, ...]] = {}


def read_allocations(folder: str) -> list[Allocation]:
    """Of the run in `folder`; none if the file is damaged."""
    try:
        with open(os.path.join(folder, FILE), "rb") as file:
            return msgspec.json.decode(file.read(), type=list[Allocation])
    except (OSError, msgspec.MsgspecError):
        return []


def write_allocations(folder: str, allocations: Sequence[Allocation]) -> None:
    write_whole(os.path.join(folder, FILE), msgspec.json.encode(allocations), sync=False)
