"""`milabench.utils`, by which name benchfiles import it: the words of an `argv`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class NotKnown(Exception):
    """A part of milabench that benchwright does not have; the message names it."""


def assemble_options(options: Mapping[str, Any] | Sequence[Any] | None) -> list[str]:
    """An `argv` of a suite as words: `true` is the flag or the word alone, `null` drops it, a list is joined by commas.
    Words alone come before options."""
    if not isinstance(options, Mapping):
        return [str(word) for word in options or ()]
    positional: list[str] = []
    words: list[str] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        if value is True:
            (words if str(name).startswith("-") else positional).append(str(name))
            continue
        if name == "--":  # words that are taken as they are
            words += map(str, value if isinstance(value, (list, tuple)) else [value])
            continue
        words += [str(name), ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)]
    return positional + words


def select_nodes(nodes: Sequence[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """The first `count` nodes, the main one in front."""
    ordered = sorted(nodes, key=lambda node: not node.get("main"))
    return ordered[: max(1, min(len(ordered), count))]


def merge(one: Any, other: Any) -> Any:
    """Maps are merged deeply, `{append: …}` makes a list longer; anything else is replaced."""
    if isinstance(one, list) and isinstance(other, Mapping) and "append" in other:
        return [*one, *other["append"]]
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return other
    merged = dict(one)
    for name, value in other.items():
        merged[name] = merge(merged[name], value) if name in merged else value
    return merged
