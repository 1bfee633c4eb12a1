"""YAML files as plain values, with the place of each of them at hand for errors.

The nodes that PyYAML composed are kept beside the values. An error names the way to a value, such as
`("resnet50", "argv", "--lr")`, and only then is its place looked up: a file without errors pays nothing for it.
"""

from __future__ import annotations

from typing import Any

import msgspec
import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from benchwright.core.errors import InvalidInput
from benchwright.kinds.text_file import LONGEST_SHOWN, Path, Remark, TextPlace, read_text
from benchwright.kinds.yaml.composing import TooDeep, compose, line_of, syntax_error
from benchwright.kinds.yaml.values import EXPAND_TAG, Misplaced, ValueBuilder


class YamlFile(msgspec.Struct, frozen=True):
    """`path` is as the user wrote it; `value` is None for an empty file."""

    path: str
    text: str
    root: Any = None  # a yaml Node
    value: Any = None
    remarks: tuple[Remark, ...] = ()
    deletes: bool = False  # whether DELETE is anywhere in `value`
    plain: bool = True  # whether JSON can hold `value`: keys are text and numbers are finite

    def lines(self) -> dict[str, int]:
        """The line of every key of the map that the file is."""
        pairs = self.root.value if isinstance(self.root, MappingNode) else []
        return {key.value: key.start_mark.line + 1 for key, _ in pairs if isinstance(key, ScalarNode)}

    def holds(self, path: Path) -> bool:
        """Whether the file has a value at `path`."""
        return _walk(self.root, path)[2]

    def place(self, path: Path, *, key: bool = False) -> TextPlace:
        """The place of the value at `path`, or of its key; of the nearest value around it if there is none."""
        key_node, node, found = _walk(self.root, path)
        at = key_node if key_node is not None and (key or not found) else node
        return TextPlace(1, 1) if at is None else TextPlace(at.start_mark.line + 1, at.start_mark.column + 1)

    def error(self, what: str, path: Path = (), remedy: str | None = None, *, key: bool = False) -> InvalidInput:
        """An InvalidInput that points at the value at `path`, or at its key."""
        return _error(self.path, self.text, what, self.place(path, key=key), remedy)


def read_yaml(path: str, *, kind: str, extras: bool = False) -> YamlFile:
    """The file at `path`, meant to be a `kind` such as "suite file"; InvalidInput points at what is wrong.

    `extras`: `!delete` and `!expand-dot` are understood; any other tag is an error.
    """
    return parse_yaml(read_text(path, kind=kind), path, extras=extras)


def parse_yaml(text: str, path: str, *, extras: bool = False) -> YamlFile:
    """As `read_yaml`, from text."""
    text = text.removeprefix("\ufeff")
    try:
        composer, root = compose(text)
    except TooDeep as deep:
        place = TextPlace(1, 1) if deep.mark is None else TextPlace(deep.mark.line + 1, deep.mark.column + 1)
        raise _error(path, text, "values are nested too deep here", place, "take some levels out") from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise _error(path, text, *syntax_error(error, text)) from None
    if root is None:
        return YamlFile(path=path, text=text)
    builder = ValueBuilder(composer, extras=extras)
    try:
        value = builder.build(root)
    except Misplaced as error:
        mark = error.node.start_mark
        raise _error(path, text, error.what, TextPlace(mark.line + 1, mark.column + 1), error.remedy) from None
    return YamlFile(path, text, root, value, tuple(builder.remarks), builder.deletes, builder.plain)


def _error(path: str, text: str, what: str, place: TextPlace, remedy: str | None) -> InvalidInput:
    line = line_of(text, place.line)
    shown = line if len(line) <= LONGEST_SHOWN else None
    return InvalidInput(what, where=path, line=place.line, column=place.column, remedy=remedy, text=shown)


def _walk(root: Node | None, path: Path) -> tuple[Node | None, Node | None, bool]:
    """Key and value as far along `path` as it exists, and whether all of it does."""
    key, node, rest = None, root, list(path)
    while rest and node is not None:
        step = _step(node, rest)
        if step is None:
            return key, node, False
        key, node, taken = step
        rest = rest[taken:]
    return key, node, node is not None


def _step(node: Node, path: Path) -> tuple[Node | None, Node, int] | None:
    """The key, the value and how many parts of `path` they take: a dotted key of `!expand-dot` takes several."""
    if isinstance(node, SequenceNode):
        index = path[0]
        inside = type(index) is int and 0 <= index < len(node.value)
        return (None, node.value[index], 1) if inside else None
    if not isinstance(node, MappingNode):
        return None
    for key, value in reversed(node.value):
        if _means(key, path[0]):
            return key, value, 1
        if node.tag == EXPAND_TAG and isinstance(key, ScalarNode) and "." in key.value:
            parts = key.value.split(".")
            if parts == [str(part) for part in path[: len(parts)]]:
                return key, value, len(parts)
    return None


def _means(key: Node, wanted: object) -> bool:
    """Whether the key node reads as `wanted`: `off` is false, an empty key is null."""
    if isinstance(wanted, bool):
        return bool(key.tag.endswith(":bool")) and (key.value.lower() in ("true", "yes", "on")) is wanted
    if wanted is None:
        return bool(key.tag.endswith(":null"))
    return bool(key.value == str(wanted))
