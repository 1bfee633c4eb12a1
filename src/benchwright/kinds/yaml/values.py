"""YAML nodes to plain values: those of `yaml.safe_load` (YAML 1.1: `yes` is true, `6e-4` is text), a date stays text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from benchwright.kinds.text_file import Remark, appears_twice
from benchwright.kinds.yaml.composing import DEEPEST, Composer
from benchwright.kinds.yaml.merge import DELETE, NothingRemoved, merge_layers

LARGEST_COUNT = 1_000_000  # values in one file, aliases written out
DELETE_TAG, EXPAND_TAG = "!delete", "!expand-dot"
_STANDARD = "tag:yaml.org,2002:"
_MAP, _LIST, _TEXT, _MERGE = _STANDARD + "map", _STANDARD + "seq", _STANDARD + "str", _STANDARD + "merge"
_AS_WRITTEN = {_STANDARD + "timestamp", _STANDARD + "value", _MERGE}


class Misplaced(Exception):
    """Something is wrong with a node."""

    def __init__(self, what: str, node: Node, remedy: str) -> None:
        super().__init__(what)
        self.what = what
        self.node = node
        self.remedy = remedy


class ValueBuilder:
    """Makes values of nodes. What aliases share is made once, and counted as often as it is used."""

    def __init__(self, composer: Composer, *, extras: bool) -> None:
        self.extras = extras
        self.remarks: list[Remark] = []
        self.deletes = False
        self.plain = True  # JSON can hold it: keys are text and numbers are finite
        self._constructors: dict[str, Callable[[Any], Any]] = {
            _STANDARD + "int": composer.construct_yaml_int,
            _STANDARD + "float": composer.construct_yaml_float,
            _STANDARD + "bool": composer.construct_yaml_bool,
            _STANDARD + "null": composer.construct_yaml_null,
        }
        self._scalars: dict[tuple[str, str], object] = {}
        self._made: dict[int, tuple[object, int, int]] = {}  # id of a collection → value, size, depth
        self._open: set[int] = set()
        self._count = 0
        self._level = self._reached = 0
        self._above: list[object] = []

    def build(self, node: Node) -> object:
        """The value of `node`; Misplaced if it cannot have one."""
        self._count += 1
        if type(node) is ScalarNode:
            return node.value if node.tag == _TEXT else self._scalar(node)
        made = self._made.get(id(node))
        if made is not None:
            return self._again(node, *made)
        if id(node) in self._open:
            raise Misplaced("this contains itself through an alias (*)", node, "write it out once")
        self._open.add(id(node))
        count, reached = self._count, self._reached
        self._level += 1
        self._reached = self._level
        value = self._collection(node)
        depth = self._reached - self._level + 1
        self._level -= 1
        self._reached = max(reached, self._reached)
        self._made[id(node)] = value, self._count - count, depth
        self._open.discard(id(node))
        return value

    def _again(self, node: Node, value: object, count: int, depth: int) -> object:
        self._count += count
        self._reached = max(self._reached, self._level + depth)
        if self._count > LARGEST_COUNT or self._reached > DEEPEST:
            raise Misplaced("the aliases (*) of this are too much when they are written out", node, "repeat it less")
        return value

    def _scalar(self, node: ScalarNode) -> object:
        if node.tag in _AS_WRITTEN:
            return node.value
        construct = self._constructors.get(node.tag)
        if construct is None:
            return self._tagged(node)
        known = node.tag, node.value
        if known not in self._scalars:
            try:
                value = self._scalars[known] = construct(node)
            except (ValueError, KeyError, IndexError, OverflowError):
                kind = node.tag.removeprefix(_STANDARD)
                raise Misplaced(f"this cannot be read as {kind}", node, "put it in quotes if it is text") from None
            if isinstance(value, int | float) and not -(2.0**53) <= value <= 2.0**53:
                self.plain = False
        return self._scalars[known]

    def _collection(self, node: Node) -> object:
        if isinstance(node, MappingNode) and node.tag == _MAP:
            return self._map(node)
        if isinstance(node, SequenceNode) and node.tag == _LIST:
            return self._list(node)
        if isinstance(node, MappingNode) and node.tag == EXPAND_TAG and self.extras:
            values = self._map(node)
            return expand_dots(values, lambda path: self._lost(node, path))
        return self._tagged(node)

    def _list(self, node: SequenceNode) -> list[object]:
        values = []
        for index, item in enumerate(node.value):
            self._above.append(index)
            value = self.build(item)
            self._above.pop()
            if value is DELETE:
                raise Misplaced("!delete removes a key of a map, not an item of a list", item, "leave the item out")
            values.append(value)
        return values

    def _map(self, node: MappingNode) -> dict[object, object]:
        result: dict[object, object] = {}
        for key_node, _ in node.value:
            if key_node.tag == _MERGE:
                self._note_duplicates(node)
                flatten(node)
                break
        pairs, above = node.value, self._above
        for key_node, value_node in pairs:
            if type(key_node) is not ScalarNode:
                raise Misplaced("a key must be one word", key_node, "put it in quotes")
            key = key_node.value if key_node.tag == _TEXT else self._key(key_node)
            above.append(key)
            result[key] = self.build(value_node)
            above.pop()
        if len(result) != len(pairs):
            self._note_duplicates(node)
        return result

    def _key(self, node: ScalarNode) -> object:
        key = self._scalar(node)
        self.plain = False
        if key is DELETE:
            raise Misplaced("!delete stands for a value, not for a key", node, "write key: !delete")
        return key

    def _tagged(self, node: Node) -> object:
        if node.tag == DELETE_TAG and self.extras:
            self.deletes = True
            return DELETE
        shown = node.tag.replace(_STANDARD, "!!")
        raise Misplaced(f"the tag {shown} has no meaning here", node, "remove it, or put the value in quotes")

    def _note_duplicates(self, node: MappingNode) -> None:
        first: dict[tuple[str, str], Node] = {}
        for key, _ in node.value:
            if type(key) is not ScalarNode or key.tag == _MERGE:
                continue
            known = first.setdefault((key.tag, key.value), key)
            if known is not key:
                what = appears_twice(key.value, known.start_mark.line + 1)
                self.remarks.append(Remark(what, key.start_mark.line + 1, (*self._above, key.value)))

    def _lost(self, node: Node, path: tuple[object, ...]) -> None:
        what = f"!delete of '{'.'.join(map(str, path))}' removes nothing inside {EXPAND_TAG}: write the map out"
        self.remarks.append(Remark(what, node.start_mark.line + 1, (*self._above, *path)))


def flatten(node: MappingNode, inside: frozenset[int] = frozenset()) -> None:
    """Replaces the keys `<<` of `node` by what they merge in, which its own keys override, as YAML 1.1 has it."""
    if id(node) in inside:
        raise Misplaced("this merges itself in through an alias (*)", node, "write it out once")
    inside |= {id(node)}
    pairs: dict[tuple[str, object], tuple[Node, Node]] = {}
    for key, value in node.value:
        if key.tag != _MERGE:
            continue
        # Of several maps the first one wins, so it is laid on last.
        for source in reversed(value.value) if isinstance(value, SequenceNode) else [value]:
            if not isinstance(source, MappingNode):
                raise Misplaced("'<<' merges maps only", value, "name a map, such as <<: *defaults")
            flatten(source, inside)
            pairs.update((_identity(pair[0]), pair) for pair in source.value)
    pairs.update((_identity(pair[0]), pair) for pair in node.value if pair[0].tag != _MERGE)
    node.value = list(pairs.values())


def _identity(key: Node) -> tuple[str, object]:
    return key.tag, key.value if isinstance(key, ScalarNode) else id(key)


def expand_dots(values: dict[object, object], unused: NothingRemoved) -> dict[object, object]:
    """`{a.b: 1, a.c: 2}` → `{a: {b: 1, c: 2}}`; the key `<<<` is replaced by the entries of its map.

    The parts are laid over each other as layers are, as in milabench: a `!delete` is used up by that, but in the first one.
    """
    parts = list(_parts(values))
    result: dict[object, object] = parts[0] if parts else {}
    for part in parts[1:]:
        result = merge_layers(result, part, unused)
    return result


def _parts(values: dict[object, object]) -> Iterator[dict[object, object]]:
    for key, value in values.items():
        if key == "<<<" and isinstance(value, dict):
            yield from _parts(value)
        elif isinstance(key, str) and "." in key:
            yield _nested(key.split("."), value)
        else:
            yield {key: value}


def _nested(keys: list[str], value: object) -> dict[object, object]:
    """`value` below each of `keys`; too many of them stay one key, which nobody will have."""
    keys = keys if len(keys) <= DEEPEST else [".".join(keys)]
    for key in reversed(keys[1:]):
        value = {key: value}
    return {keys[0]: value}
