"""The file of a specification: JSON, or YAML with the same keys."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchwright.kinds.spec.read.json_file import JsonFile
    from benchwright.kinds.yaml.nodes import YamlFile
    from benchwright.kinds.yaml.value_types import PlacedValues

YAML = (".yaml", ".yml")
_SNIFFED_BYTES = 256 << 10
_JSON_KEY = re.compile(rb'"(model|tests|meta|benchmarks)"\s*:')
_YAML_KEY = re.compile(rb"""^["']?(model|tests|meta|benchmarks)["']?\s*:(?!\s*\S*://)""", re.M)


def is_yaml(path: str) -> bool:
    return path.lower().endswith(YAML)


def load(path: str) -> PlacedValues:
    """InvalidInput points at what is not JSON or YAML. A key whose value is null is not there."""
    import msgspec

    file = _parsed(path)
    return msgspec.structs.replace(file, value=_without_nulls(file, file.value, ()))


def _without_nulls(file: PlacedValues, value: Any, path: tuple[object, ...]) -> Any:
    if isinstance(value, dict):
        kept = {key: inner for key, inner in value.items() if inner is not None}
        return {key: _without_nulls(file, inner, (*path, key)) for key, inner in kept.items()}
    if isinstance(value, list):
        if None in value:
            raise file.error("null stands for nothing in a list", (*path, value.index(None)), "remove it")
        return [_without_nulls(file, inner, (*path, at)) for at, inner in enumerate(value)]
    return value


def _parsed(path: str) -> YamlFile | JsonFile:
    # Imported here: whether a file is a specification is asked about every target.
    from benchwright.kinds.text_file import read_text

    text = read_text(path, kind="specification")
    if is_yaml(path):
        from benchwright.kinds.yaml.nodes import parse_yaml

        return parse_yaml(text, path)
    from benchwright.kinds.spec.read.json_file import parse_json

    return parse_json(text, path)


def looks_like_one(path: str) -> bool:
    """Told from its keys: a model with tests, or meta with benchmarks. A file that was cut off still is one."""
    if not path.lower().endswith((".json", *YAML)):
        return False
    try:
        with open(path, "rb") as file:
            head = file.read(_SNIFFED_BYTES)
    except (OSError, ValueError):
        return False
    found = {match.decode() for match in (_YAML_KEY if is_yaml(path) else _JSON_KEY).findall(head)}
    if {"model", "tests"} <= found or {"meta", "benchmarks"} <= found:
        return True
    if is_yaml(path):
        return False
    return bool(re.match(rb'\s*\{\s*"(model|meta)"\s*:\s*\{', head)) and not os.path.basename(path).startswith(".")
