"""The cores that a test asks for: `taskset` is a mask in hexadecimal, `cpu-list` a list."""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchwright.core.errors import InvalidInput

_MOST = 1024


def cores_in_mask(text: str) -> tuple[int, ...]:
    """`c` is 1100 in binary: cores 2 and 3."""
    if not re.fullmatch(r"\s*(0x)?[0-9a-fA-F]{1,256}\s*", text) or not int(text, 16):
        raise InvalidInput(f"'{text}' is not a mask of cores", remedy="write it in hexadecimal: f0 is cores 4 to 7")
    mask = int(text, 16)
    return tuple(core for core in range(mask.bit_length()) if mask >> core & 1)


def cores_in_list(text: str) -> tuple[int, ...]:
    """`0-2,5`."""
    cores: dict[int, None] = {}
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,4})\s*(?:-\s*(\d{1,4})\s*)?", part, re.ASCII)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if not first <= last < _MOST:
            raise InvalidInput(f"'{text}' is not a list of cores", remedy="write it like 0-2,5")
        cores |= dict.fromkeys(range(first, last + 1))
    return tuple(cores)


def present(wanted: Sequence[int], usable: Sequence[int]) -> tuple[tuple[int, ...], str | None]:
    """The usable ones of `wanted`, and a note if some are not."""
    there = tuple(core for core in wanted if core in usable)
    if len(there) == len(wanted):
        return there, None
    missing = ", ".join(str(core) for core in wanted if core not in there)
    noun = "core" if len(wanted) - len(there) == 1 else "cores"
    instead = f"pinned to {', '.join(map(str, there))} only" if there else "not pinned"
    return there, f"asks for {noun} {missing}, which cannot be used here: {instead}"
