"""The marks of all agents that wrote into a run folder, from the first line of each stream."""

from __future__ import annotations

from pathlib import Path

import msgspec

from benchwright.core.node.leftovers import Mark

_FIRST_BYTES = 4096


def read_marks(folder: Path) -> list[Mark]:
    """Including streams set aside; skips a stream that cannot be read."""
    found: dict[Mark, None] = {}
    for path in sorted(folder.glob("*.data")):
        if not path.is_file():  # reading a pipe would block forever
            continue
        try:
            with open(path, "rb") as stream:
                first = msgspec.json.decode(stream.read(_FIRST_BYTES).partition(b"\n")[0])
            found[Mark(msgspec.convert(first["mark"], str), msgspec.convert(first.get("group"), str | None))] = None
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
            continue
    return list(found)
