"""Samplers: the built-in ones, and ones of installed packages, from the entry-point group `benchwright.samplers`."""

from __future__ import annotations

from benchwright.core.entry_points import EntryPoint, find_entry_points, own_entry_points

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

GROUP = "benchwright.samplers"


def find_samplers(path: Iterable[str] | None = None) -> dict[str, EntryPoint]:
    """Every sampler installed on `path` (sys.path if not given), by name; none of them is imported."""
    return {**find_entry_points(GROUP, path), **own_entry_points(GROUP)}
