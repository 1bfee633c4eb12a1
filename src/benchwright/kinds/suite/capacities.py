"""Amounts of memory as system and scaling files write them: `80 GiB`, `81920 MiB`, `12Go`, `All`."""

from __future__ import annotations

import re

from benchwright.core.errors import InvalidInput
from benchwright.core.numbers.quantities import parse_size
from benchwright.kinds.suite.yaml.checked_values import shown

ALL = "all"  # the whole of the device, however much that is
_OCTETS = re.compile(r"(?<=[0-9 kKMGT])(i?)o$")  # French: Go is GB, Gio is GiB


def parse_capacity(value: object) -> int | None:
    """Bytes; None for `All`. InvalidInput, without a place, if it is no amount of memory."""
    text = shown(value).strip()
    if text.lower() == ALL:
        return None
    try:
        if isinstance(value, (int, float, str)) and not isinstance(value, bool):
            return parse_size(_OCTETS.sub(r"\1B", text).replace("k", "K"))
    except (InvalidInput, OverflowError):
        pass
    raise InvalidInput(f"'{text}' is not an amount of memory", remedy="write 80GiB or 81920 MiB, or All")
