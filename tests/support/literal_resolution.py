"""How milabench resolves a suite, restated step by step on what yaml.safe_load gives: slow, unplaced, for comparing only.

In place, in the order of the files, as it happens there. What it does by accident (letters of a text as values of a
matrix, a missing name) is not restated: tests do not ask for it.
"""

from __future__ import annotations

import copy
import itertools
import os
import re
from typing import Any

import yaml

REMOVE = object()


class _Loader(yaml.CSafeLoader):
    pass


def _expand_dots(loader: _Loader, node: yaml.MappingNode) -> dict[str, Any]:
    return _dots(loader.construct_mapping(node, deep=True))


_Loader.add_constructor("!delete", lambda loader, node: REMOVE)
_Loader.add_constructor("!expand-dot", _expand_dots)


def literal_resolution(path: str | os.PathLike[str], overrides: dict[str, Any] | None = None) -> dict[str, Any]:
    """Every public entry, as it ends up."""
    everything: dict[str, Any] = {"_defaults": {"enabled": True}}
    for layer in [*_layers(os.path.abspath(path)), overrides or {}]:
        everything = _merged(everything, layer)
    everything = _without_matrices(everything)
    for name in everything:
        entry = everything[name]
        while entry.get("inherits"):
            parent = everything[entry.pop("inherits")]
            tags = set(parent.get("tags") or []) | set(entry.get("tags") or [])
            entry = _merged(parent, entry)
            entry["tags"] = sorted(tags)
        entry.pop("inherits", None)
        if "*" in everything:
            entry = _merged(entry, everything["*"])
        everything[name] = entry
    public = {n: e for n, e in everything.items() if n != "*" and not n.startswith("_")}
    return {name: _referred(entry, entry, []) for name, entry in public.items()}


def _layers(path: str) -> list[dict[str, Any]]:
    with open(path, encoding="utf-8") as file:
        content = yaml.load(file, _Loader)
    included = content.pop("include", [])
    below = [
        layer
        for name in ([included] if isinstance(included, str) else included)
        for layer in _layers(os.path.join(os.path.dirname(path), name))
    ]
    return [*below, content]


def _merged(below: Any, above: Any) -> Any:
    if isinstance(below, dict) and isinstance(above, dict):
        result = {}
        for key in [*below, *(k for k in above if k not in below)]:
            if key not in above:
                result[key] = below[key]
            elif above[key] is REMOVE:
                continue
            else:
                result[key] = _merged(below[key], above[key]) if key in below else _clean(above[key])
        return result
    if isinstance(below, list) and isinstance(above, dict) and "append" in above:
        return below + above["append"]
    return _clean(above)


def _clean(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _clean(v) for k, v in value.items() if v is not REMOVE}
    return [_clean(v) for v in value] if isinstance(value, list) else value


def _dots(values: dict[Any, Any]) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    for key, value in values.items():
        if key == "<<<":
            result = _merged(result, _dots(value))
        elif isinstance(key, str) and "." in key:
            head, rest = key.split(".", 1)
            result = _merged(result, {head: _dots({rest: value})})
        else:
            result = _merged(result, {key: value})
    return result


def _without_matrices(entries: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, entry in entries.items():
        for made_name, made in _made(entry) if "matrix" in entry else [(name, copy.deepcopy(entry))]:
            assert made_name not in result
            result[made_name] = made
    return result


def _made(entry: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    keys = list(entry["matrix"])
    choices = [v if isinstance(v, list) else [v] for v in entry["matrix"].values()]
    found = []
    for backwards in itertools.product(*reversed(choices)):
        values = dict(zip(keys, reversed(backwards), strict=True))
        job = copy.deepcopy(entry["job"])
        name = job.pop("name").format(**values)
        for words in (job, job.get("client", {}), job.get("server", {})):
            for key, value in words.get("argv", {}).items():
                if isinstance(value, str):
                    try:
                        words["argv"][key] = value.format(**values)
                    except (KeyError, IndexError, ValueError):
                        pass
        found.append((name, job))
    return found


def _referred(value: Any, entry: dict[str, Any], path: list[Any]) -> Any:
    """With ${key}, ${..key} of the entry put in; as much as the real files use."""
    if isinstance(value, dict):
        return {k: _referred(v, entry, [*path, k]) for k, v in value.items()}
    if isinstance(value, list):
        return [_referred(v, entry, [*path, i]) for i, v in enumerate(value)]
    if not isinstance(value, str):
        return value
    return re.sub(r"\$\{(?:\.\.)?(\w+)\}", lambda m: str(entry[m[1]]), value)
