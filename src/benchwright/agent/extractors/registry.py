"""Which class reads which kind of metric."""

from __future__ import annotations

from collections.abc import Callable

from benchwright.agent.extractors.base import ENTRY_POINT_GROUP, Extractor
from benchwright.agent.extractors.json_lines import JsonLinesExtractor
from benchwright.agent.extractors.key_value import KeyValueExtractor
from benchwright.agent.extractors.regex import RegexExtractor
from benchwright.core.errors import InvalidInput, did_you_mean

BUILT_IN: dict[str, Callable[[str], Extractor]] = {
    "regex": RegexExtractor,
    "json": JsonLinesExtractor,
    "key_value": KeyValueExtractor,
}


def extractor_class(kind: str) -> Callable[[str], Extractor]:
    """The built-in class of that kind, or the one that an installed package offers in the entry-point group."""
    if kind in BUILT_IN:
        return BUILT_IN[kind]
    from importlib.metadata import entry_points  # here: costs 20 ms that the built-in kinds need not pay

    offered = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
    if kind not in offered:
        known = [*BUILT_IN, *offered]
        raise InvalidInput(
            f"'{kind}' is not a kind of extractor",
            remedy=did_you_mean(kind, known) or f"use one of {', '.join(sorted(set(known)))}",
        )
    found: Callable[[str], Extractor] = offered[kind].load()
    return found
