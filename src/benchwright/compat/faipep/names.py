"""Names as FAI-PEP writes them: of folders, files and platforms."""

from __future__ import annotations

import hashlib

from benchwright.core.machine import UNKNOWN, Machine

_KEPT = "_.-"
_LONGEST = 200  # bytes; file systems take 255, and an ending follows


def file_name(name: str) -> str:
    """Spaces and slashes become hyphens; of the rest, only letters, digits, `_`, `.` and `-` stay. Never leads elsewhere."""
    hyphens = name.replace(" ", "-").replace("/", "-")
    kept = "".join(c for c in hyphens if c.isalpha() or c.isdigit() or c in _KEPT)
    if not kept.strip("."):
        kept = f"_{_digest(name)}" if name else "_"
    if len(kept.encode()) > _LONGEST:
        kept = f"{kept.encode()[: _LONGEST - 13].decode(errors='ignore')}-{_digest(name)}"
    return kept


def platform_of(machine: Machine) -> str:
    """The operating system and the processor, as the machine itself said; of older runs, what is known of both."""
    parts = [machine.system, machine.kernel, machine.architecture, machine.cpu]
    words = [word for word in parts if word and word != UNKNOWN]
    return file_name(machine.platform or "-".join(words) or UNKNOWN)


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
