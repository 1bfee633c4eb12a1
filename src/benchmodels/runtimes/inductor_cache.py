"""torch's own cache of compiled code. torch believes what is in it: of a library that was cut short, by a full disk or a
crash, it dies, or takes the processor for one without vector instructions and compiles slow code without a word."""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path
from typing import List

VARIABLE = "TORCHINDUCTOR_CACHE_DIR"
SETTLED_S = 10.0  # one that was written to just now may still be in the making


def remove_damaged() -> List[str]:
    """Removes libraries that are not whole; torch makes them again. Their names."""
    folder = os.environ.get(VARIABLE)
    removed = []
    for path in sorted(Path(folder).rglob("*.so")) if folder else ():
        try:
            if time.time() - path.stat().st_mtime > SETTLED_S and not is_whole(path):
                path.unlink()
                removed.append(path.name)
        except OSError:  # somebody else was faster
            continue
    return removed


def is_whole(path: Path) -> bool:
    """Whether a library of Linux ends where its header says."""
    with open(path, "rb") as file:
        header = file.read(64)
    if len(header) < 64 or header[:5] != b"\x7fELF\x02":
        return header[:4] == b"\x7fELF" and len(header) == 64  # of 32 bits: not looked at
    order = "<" if header[5] == 1 else ">"
    (sections_at,) = struct.unpack_from(f"{order}Q", header, 0x28)
    size, count = struct.unpack_from(f"{order}HH", header, 0x3A)
    ends_at: int = sections_at + size * count
    return path.stat().st_size >= ends_at
