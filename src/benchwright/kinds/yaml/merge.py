"""Merging maps: later values override earlier ones, and `!delete` removes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

APPEND = "append"


class Delete:
    """The value of `!delete`: the key is to be removed."""

    def __repr__(self) -> str:
        return "!delete"


DELETE = Delete()
NothingRemoved = Callable[[tuple[Any, ...]], None]  # called with the path of a `!delete` that removed nothing


def merge(below: object, above: Any) -> Any:
    """Maps merge deeply; a list is replaced, or made longer by `{append: […]}`; anything else is replaced.

    Neither is changed, and parts are shared with the result. There is no DELETE in them: see `merge_layers`.
    """
    if isinstance(below, dict) and isinstance(above, dict):
        merged = dict(below)
        for key, value in above.items():
            if key in merged:
                old = merged[key]
                # The same again is what most entries get from '*' and from files that are included twice.
                merged[key] = merge(old, value) if isinstance(old, dict | list) else value
            else:
                merged[key] = value
        return merged
    if isinstance(below, list) and is_append(above):
        return below + above[APPEND]
    return above


def is_append(value: object) -> bool:
    """Whether it is `{append: […]}`, which makes a list longer."""
    return isinstance(value, dict) and isinstance(value.get(APPEND), list)


def merge_layers(below: dict[Any, Any], above: dict[Any, Any], unused: NothingRemoved) -> dict[Any, Any]:
    """As `merge`, and `!delete` in `above` removes what `below` has of that key. The result holds no DELETE."""
    merged: dict[object, object] = _merge_layers(below, above, unused, ())
    return merged


def _merge_layers(below: object, above: object, unused: NothingRemoved, path: tuple[object, ...]) -> Any:
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return merge(below, _cleaned(above, unused, path))
    merged = dict(below)
    for key, value in above.items():
        here = (*path, key)
        if value is not DELETE:
            known = key in merged
            merged[key] = _merge_layers(merged[key], value, unused, here) if known else _cleaned(value, unused, here)
        elif key in merged:
            del merged[key]
        else:
            unused(here)
    return merged


def _cleaned(value: object, unused: NothingRemoved, path: tuple[object, ...]) -> object:
    """`value` without its `!delete` marks: there is nothing below to remove."""
    if isinstance(value, list):
        return [_cleaned(item, unused, (*path, index)) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    for key, item in value.items():
        if item is DELETE:
            unused((*path, key))
    return {key: _cleaned(item, unused, (*path, key)) for key, item in value.items() if item is not DELETE}
