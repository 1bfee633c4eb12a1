"""Names of a job's files: `name[.R<n>][.D<gpu>|.<job>][.<node>]`, or `name[.R<n>].<tag>`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache

_UNSAFE = re.compile(r"[^A-Za-z0-9_.+=@,:-]")
_LONGEST = 120  # bytes of a name; file systems take 255, and suffixes follow


@lru_cache(maxsize=256)
def safe_name(name: str) -> str:
    """`name` made safe for a file name: other characters become %XX, as in a URL."""
    escaped = _UNSAFE.sub(lambda m: "".join(f"%{byte:02X}" for byte in m[0].encode("utf-8", "surrogatepass")), name)
    if not escaped:
        return "%00"
    if escaped[0] in ".-":
        escaped = f"%{ord(escaped[0]):02X}" + escaped[1:]
    if len(escaped) > _LONGEST:
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        escaped = escaped[: _LONGEST - 13].rstrip("%") + "~" + digest
    return escaped


def stem(
    name: str,
    *,
    launch: int | None = None,
    warmup: bool = False,
    device: int | None = None,
    job: int | None = None,
    node: str | None = None,
    tag: Sequence[str] = (),
) -> str:
    """The stem of a job's file names; `launch` counts, warm-up ones (`W`) apart from measured ones (`R`).

    `node`: set if several machines run one launch together. `tag` stands in place of device, job and node.
    """
    parts = [safe_name(name)]
    if launch is not None:
        parts.append(f"{'W' if warmup else 'R'}{launch}")
    if tag:
        return ".".join([*parts, *map(safe_name, tag)])
    if device is not None:
        parts.append(f"D{device}")
    elif job is not None:
        parts.append(str(job))
    if node is not None:
        parts.append(safe_name(node))
    return ".".join(parts)
