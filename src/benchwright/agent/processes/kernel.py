"""Small files of the kernel. One that cannot be read is None or empty; nothing raises."""

from __future__ import annotations

import os


def read_text(path: str) -> str | None:
    """The stripped text; None if there is none."""
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20).decode(errors="replace").strip() or None
    except (OSError, ValueError):
        return None


def read_number(path: str) -> int | None:
    """A whole number, possibly negative."""
    try:
        return int(read_text(path) or "")
    except ValueError:
        return None


def list_folder(path: str) -> list[str]:
    """The names in it, sorted."""
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []
