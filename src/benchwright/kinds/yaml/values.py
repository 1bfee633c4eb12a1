"""YAML nodes to plain values: those of `yaml.safe_load` (YAML 1.1: `yes` is true, `6e-4` is text), a date stays text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.reader import Reader, ReaderError

from benchwright.core.errors import InvalidInput
from benchwright.kinds.text_file import LONGEST_SHOWN, Path, Remark, TextPlace, appears_twice, read_text
from benchwright.kinds.yaml.merge import DELETE, NothingRemoved, merge_layers

# Text to YAML nodes by PyYAML's C parser, guarded; and its complaints in words with a remedy.


try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # built without libyaml: the same, slower
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]

DEEPEST = 100
_LINE_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")  # where the parser counts a new line

_REMEDIES = {
    "found character that cannot start any token": "put the value in quotes",
    "mapping values are not allowed": "put the value in quotes if it holds ': ', and check the indentation",
    "could not find expected ':'": "a key is followed by ': '; check the indentation of the lines around",
    "did not find expected key": "check the indentation of this line and the ones above",
    "did not find expected '-' indicator": "check the indentation of this line and the ones above",
    "found unexpected end of stream": "close the quote, [ or { that was opened",
    "did not find expected ',' or": "close the [ or { that was opened, and put commas between items",
    "did not find expected node content": "write a value, or close the [ or { that was opened",
    "found undefined alias": "define it before with &, or put the value in quotes",
    "expected a single document": "put one document in a file: remove the second ---",
    "but found another document": "put one document in a file: remove the second ---",
}


class TooDeep(Exception):
    """The text nests deeper than DEEPEST; without this guard the C parser overruns its stack."""

    def __init__(self, mark: Any) -> None:
        super().__init__("nested too deep")
        self.mark = mark


class Composer(_Loader):
    """Composes nodes only; the parser calls the two hooks around every node."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = 0

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise TooDeep(None if current_node is None else current_node.start_mark)

    def ascend_resolver(self) -> None:
        self.depth -= 1


def compose(text: str) -> tuple[Composer, Node | None]:
    """The one document in `text`; None: it has none. Raises TooDeep or what PyYAML raises."""
    composer = Composer(text)
    return composer, composer.get_single_node()


def syntax_error(error: Exception, text: str) -> tuple[str, TextPlace, str]:
    """The problem, its place and its remedy, from an exception of PyYAML."""
    if isinstance(error, ReaderError | UnicodeError):
        return _bad_character(text)
    if not isinstance(error, yaml.MarkedYAMLError):
        return f"this is not YAML: {error}", TextPlace(1, 1), "check the file"
    mark = error.problem_mark or error.context_mark
    problem = error.problem or error.context or "it cannot be understood"
    place = TextPlace(1, 1) if mark is None else TextPlace(mark.line + 1, mark.column + 1)
    remedy = next((r for part, r in _REMEDIES.items() if part in problem), "check the indentation and the quotes")
    if line_of(text, place.line)[place.column - 1 : place.column] == "\t":
        return "this is not YAML: a tab where none may be", place, "indent with spaces"
    opened = error.context_mark.line + 1 if error.context_mark is not None else place.line
    if error.context and opened < place.line:
        return f"this is not YAML: {problem} {error.context} from line {opened}", place, remedy
    return f"this is not YAML: {problem}", place, remedy


def line_of(text: str, number: int) -> str:
    """The line `number` of `text`, counted from 1 as the parser does; empty behind the end."""
    lines = _LINE_BREAK.split(text)
    return lines[number - 1] if 0 < number <= len(lines) else ""


def _bad_character(text: str) -> tuple[str, TextPlace, str]:
    found = Reader.NON_PRINTABLE.search(text)
    position = found.start() if found else 0
    before = text[:position]
    line_start = before.rfind("\n") + 1
    place = TextPlace(before.count("\n") + 1, position - line_start + 1)
    character = f"the character U+{ord(text[position]):04X}" if position < len(text) else "a character"
    return f"{character} is not allowed in YAML", place, "remove it; this may be a binary file, or not UTF-8"


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

    The parts are laid over each other as layers are: a `!delete` is used up by that, but in the first one.
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


# YAML files as plain values, with the place of each of them at hand for errors.
#
# The nodes that PyYAML composed are kept beside the values. An error names the way to a value, such as
# `("resnet50", "argv", "--lr")`, and only then is its place looked up: a file without errors pays nothing for it.


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
