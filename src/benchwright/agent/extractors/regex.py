"""Python regular expressions: results as if matched line by line, at the speed of scanning blocks."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from importlib import import_module
from itertools import accumulate
from typing import Any

import msgspec

from benchwright.agent.extractors.base import Block, Hits
from benchwright.agent.extractors.numbers import may_be_cut, whole_number
from benchwright.core.errors import InvalidInput
from benchwright.core.pattern import first_group, open_sides, with_numbers

# What the parse tree of a regular expression reveals: text that every match needs, and a pattern for whole blocks.
#
# Why: the engine searches a block of many lines much faster than Python can hand it one line after the other
# (performance/extraction.py measures it).
# Limits: the tree (`re._parser`) is not a public part of `re`, so a new Python may change it. Whatever this module does not
# recognise, it answers with "nothing known", and the caller scans line by line, which finds the same.
# tests/unit/agent/extractors/test_same_as_line_by_line.py compares both on generated patterns and logs.
# Switch: BENCHWRIGHT_PATTERN_TREE=off always scans line by line.


compiler: Any = import_module("re._compiler")
parser: Any = import_module("re._parser")
sre: Any = import_module("re._constants")

SWITCH = "BENCHWRIGHT_PATTERN_TREE"
_NEWLINE = 10
_LINE_ENDS = (10, 13)  # never in a line, so never in text to search for
# What \s means in a str pattern, less \n; a set cannot be subtracted from, so where \s is one of several it is spelt out.
_SPACES: tuple[tuple[int, int], ...] = (
    *((9, 9), (11, 13), (28, 32), (133, 133), (160, 160), (5760, 5760)),
    *((8192, 8202), (8232, 8233), (8239, 8239), (8287, 8287), (12288, 12288)),
)
_ASCII_SPACES: tuple[tuple[int, int], ...] = ((9, 9), (11, 13), (32, 32))
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
_OPPOSITE = {
    sre.CATEGORY_SPACE: sre.CATEGORY_NOT_SPACE,
    sre.CATEGORY_NOT_DIGIT: sre.CATEGORY_DIGIT,
    sre.CATEGORY_NOT_WORD: sre.CATEGORY_WORD,
}
_LINE_ANCHORS = {
    sre.AT_BEGINNING: sre.AT_BEGINNING,
    sre.AT_BEGINNING_STRING: sre.AT_BEGINNING,
    sre.AT_END: sre.AT_END,
    sre.AT_END_STRING: sre.AT_END,
    sre.AT_BOUNDARY: sre.AT_BOUNDARY,
}  # not \B: it differs between an empty line and an empty string

Tree = Any  # re._parser.SubPattern
Node = tuple[Any, Any]


class Knowledge(msgspec.Struct, frozen=True):
    """Facts about a pattern.

    `literal` is in every line that matches (compare in lower case if `ignores_case`), "" if nothing is known;
    `begins_with_literal`: the engine can search for the start of a match quickly. `fragments` is all literal text.
    `block_pattern` finds in many lines at once what the pattern finds in each of them, and has at
    least one group (the whole match if the pattern has none); None if that cannot be had.
    """

    literal: str
    ignores_case: bool
    begins_with_literal: bool
    fragments: tuple[str, ...]
    block_pattern: re.Pattern[str] | None


_NOTHING = Knowledge("", False, False, (), None)


class _NotForBlocks(Exception):
    """The pattern has an element that cannot be kept inside a line."""


def understand(pattern: str) -> Knowledge:
    """Facts about a pattern that `re.compile` accepts."""
    if os.environ.get(SWITCH) == "off":
        return _NOTHING
    try:
        tree = parser.parse(pattern)
        fragments = tuple(text for text, _ in _literal_runs(tree, required=False))
        ignores_case = bool(tree.state.flags & re.IGNORECASE)
        literal = max((text for text, required in _literal_runs(tree) if required), key=len, default="")
        if ignores_case:
            literal = literal.lower() if literal.isascii() else ""
        if not _is_in_bytes(literal):
            literal = ""
        begins = bool(len(tree)) and _first(tree)[0] is sre.LITERAL and not ignores_case
    except Exception:  # another Python's tree: know nothing rather than something wrong
        return _NOTHING
    return Knowledge(literal, ignores_case, begins, fragments, _block_pattern(pattern))


def _is_in_bytes(literal: str) -> bool:
    """Text with this literal comes from bytes with its encoding: not so for what stands for undecodable bytes."""
    return "\ufffd" not in literal and not any("\ud800" <= character <= "\udfff" for character in literal)


def _block_pattern(pattern: str) -> re.Pattern[str] | None:
    try:
        tree = parser.parse(pattern)
        inner = _Inside(tree.state.flags).sequence(tree)
        tree.state.flags = (tree.state.flags | re.MULTILINE) & ~re.DOTALL & ~re.DEBUG
        if tree.state.groups == 1:
            group = tree.state.opengroup(None)
            tree.state.closegroup(group, inner)
            inner = parser.SubPattern(tree.state, [(sre.SUBPATTERN, (group, 0, 0, inner))])
        compiled: re.Pattern[str] = compiler.compile(inner)
        return compiled
    except Exception:  # _NotForBlocks, or another Python's tree: line by line is always right
        return None


def _first(tree: Tree) -> Node:
    node: Node = tree[0]
    while node[0] is sre.SUBPATTERN and len(node[1][3]) and not node[1][1] & re.IGNORECASE:
        node = node[1][3][0]
    return node


def _literal_runs(tree: Tree, required: bool = True) -> Iterator[tuple[str, bool]]:
    """Runs of literal characters, with whether every match holds them."""
    run: list[str] = []
    for op, argument in _flat(tree):
        if op is sre.LITERAL and argument not in _LINE_ENDS:
            run.append(chr(argument))
            continue
        if op in (sre.AT, sre.ASSERT, sre.ASSERT_NOT):
            continue  # no width, so the text goes on
        if run:
            yield "".join(run), required
            run = []
        if op in _REPEATS:
            yield from _literal_runs(argument[2], required and argument[0] > 0)
        elif op is sre.BRANCH:
            for branch in argument[1]:
                yield from _literal_runs(branch, False)
        elif op is sre.SUBPATTERN:
            yield from _literal_runs(argument[3], False)  # only here if it changes the meaning of case
    if run:
        yield "".join(run), required


def _flat(tree: Tree) -> Iterator[Node]:
    """The sequence with its groups opened, where they do not start to ignore case."""
    for op, argument in tree:
        if op is sre.SUBPATTERN and not argument[1] & re.IGNORECASE:
            yield from _flat(argument[3])
        elif op is sre.ATOMIC_GROUP:
            yield from _flat(argument)
        else:
            yield op, argument


class _Inside:
    """Rewrites a tree so that nothing in it can match a `\\n`, and anchors mean those of a line.

    Then an element fails at the end of a line just as it fails at the end of a text that is the line alone, so
    all choices of the engine are the same.
    """

    def __init__(self, flags: int) -> None:
        self._flags = flags

    def sequence(self, tree: Tree) -> Tree:
        return parser.SubPattern(tree.state, [self.node(op, argument) for op, argument in tree])

    def node(self, op: object, argument: Any) -> Node:
        if op is sre.LITERAL and argument != _NEWLINE:
            return op, argument
        if op is sre.NOT_LITERAL:
            return sre.IN, [(sre.NEGATE, None), (sre.LITERAL, argument), (sre.LITERAL, _NEWLINE)]
        if op in (sre.ANY, sre.GROUPREF, sre.FAILURE):
            return op, argument
        if op is sre.IN:
            return op, self._set(argument)
        if op is sre.AT and argument in _LINE_ANCHORS:
            return op, _LINE_ANCHORS[argument]
        return self._compound(op, argument)

    def _compound(self, op: Any, argument: Any) -> Node:
        if op is sre.SUBPATTERN:
            group, added, removed, inner = argument
            return op, (group, added & ~re.DOTALL, removed & ~re.MULTILINE, self.sequence(inner))
        if op in _REPEATS:
            least, most, inner = argument
            return op, (least, most, self.sequence(inner))
        if op is sre.BRANCH:
            return op, (None, [self.sequence(branch) for branch in argument[1]])
        if op in (sre.ASSERT, sre.ASSERT_NOT):
            direction, inner = argument
            return op, (direction, self.sequence(inner))
        if op is sre.ATOMIC_GROUP:
            return op, self.sequence(argument)
        if op is sre.GROUPREF_EXISTS:
            group, yes, no = argument
            return op, (group, self.sequence(yes), no and self.sequence(no))
        raise _NotForBlocks(op)

    def _set(self, items: list[Node]) -> list[Node]:
        if items[0][0] is sre.NEGATE:
            return [*items, (sre.LITERAL, _NEWLINE)]
        if len(items) == 1 and items[0][0] is sre.CATEGORY and items[0][1] in _OPPOSITE:
            return [(sre.NEGATE, None), (sre.CATEGORY, _OPPOSITE[items[0][1]]), (sre.LITERAL, _NEWLINE)]
        return [kept for item in items for kept in self._set_item(*item)]

    def _set_item(self, op: object, argument: Any) -> list[Node]:
        if op is sre.LITERAL:
            return [] if argument == _NEWLINE else [(op, argument)]
        if op is sre.RANGE:
            low, high = argument
            parts = [(low, min(high, _NEWLINE - 1)), (max(low, _NEWLINE + 1), high)]
            return [(sre.RANGE, part) for part in parts if part[0] <= part[1]]
        if op is sre.CATEGORY and argument in (sre.CATEGORY_DIGIT, sre.CATEGORY_WORD, sre.CATEGORY_NOT_SPACE):
            return [(op, argument)]
        if op is sre.CATEGORY and argument is sre.CATEGORY_SPACE:
            ranges = _ASCII_SPACES if self._flags & re.ASCII else _SPACES
            return [(sre.RANGE, part) for part in ranges]
        raise _NotForBlocks(op)


# One line taken by itself costs as much as the engine needs for about this many bytes: with a quick search for the
# start of a match, and without. Where the needed text is more frequent, the whole block is given to the engine.
_BYTES_PER_LINE_QUICK = 1000
_BYTES_PER_LINE_SLOW = 150


class RegexExtractor:
    """The value of a match is its first group that took part, or the whole match if the pattern has no group.

    Three ways to scan, all with the result of `finditer` on each line:
    - jump from one occurrence of text that every match needs to the next, and match only those lines;
    - where that text is frequent, run a pattern that cannot leave a line over the whole block;
    - where neither is possible, match each line.
    """

    def __init__(self, pattern: str, *, begins_whole: bool = False) -> None:
        """`begins_whole`: what precedes the number in the pattern cannot be part of it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "possible nested set": about some future Python
            whole = with_numbers(pattern)
            self._by_line = _compile(whole)
            known = understand(whole)
        before, self._after = open_sides(whole)
        self._before = before and not begins_whole
        group = first_group(whole) or (0, len(whole))
        self._at_edges = group[0] * self._before == 0 and (group[1] == len(whole) or not self._after)
        self.fragments = known.fragments
        self._literal = known.literal.encode()
        self._ignores_case = known.ignores_case
        self._by_block = known.block_pattern
        self._bytes_per_line = _BYTES_PER_LINE_QUICK if known.begins_with_literal else _BYTES_PER_LINE_SLOW
        self._is_dense = False

    def scan(self, block: Block) -> Hits:
        hits = Hits()
        haystack = self._haystack(block)
        if haystack is not None and not (self._is_dense and self._by_block):
            self._scan_lines_with_literal(block, haystack, hits)
        elif self._by_block is None:
            self._scan_each_line(block, hits)
        elif block.is_plain and self._at_edges:
            self._scan_plain_block(block, self._by_block, hits)
        else:
            self._scan_block(block, self._by_block, hits)
        return hits

    def _haystack(self, block: Block) -> bytes | None:
        """Where the needed text can be searched for, if there is any and an escape sequence cannot be inside it."""
        if not self._literal or block.has_escapes:
            return None
        return block.folded if self._ignores_case else block.raw

    def _scan_lines_with_literal(self, block: Block, haystack: bytes, hits: Hits) -> None:
        budget = len(haystack) // self._bytes_per_line + 1
        position = haystack.find(self._literal)
        while position >= 0:
            start, end = block.line_bounds(position)
            self._scan_each_line(block.line(start, end), hits)
            budget -= 1
            if not budget and self._by_block and end < len(haystack):
                self._is_dense = True
                hits.extend(self.scan(block.after(end + 1)))
                return
            position = haystack.find(self._literal, end)

    def _scan_plain_block(self, block: Block, pattern: re.Pattern[str], hits: Hits) -> None:
        """The text between matches holds all the line ends: cheaper than asking for positions."""
        parts = pattern.split(block.text)
        stride = pattern.groups + 1
        betweens = parts[:-1:stride]
        self._note_density(block, len(betweens))
        if not betweens:
            return
        if may_be_cut(betweens if self._before else (), parts[stride::stride] if self._after else ()):
            self._scan_block(block, pattern, hits)
            return
        values = parts[1::stride]
        if stride > 2:
            groups = [parts[index::stride] for index in range(1, stride)]
            values = [next((text for text in row if text is not None), None) for row in zip(*groups, strict=True)]
        hits.add_all(values, _line_numbers(block, betweens, parts[-1]))

    def _scan_block(self, block: Block, pattern: re.Pattern[str], hits: Hits) -> None:
        line, counted_to = block.first_line, 0
        for match in pattern.finditer(block.text):
            line += block.numbered.count("\n", counted_to, match.start())
            counted_to = match.start()
            self._add(match, line, hits)
        self._note_density(block, len(hits.values) + hits.unparsed)

    def _scan_each_line(self, block: Block, hits: Hits) -> None:
        line, position = block.first_line, 0
        for text in block.text.split("\n"):
            for match in self._by_line.finditer(text):
                self._add(match, line, hits)
            position += len(text) + 1
            line += block.numbered.startswith("\n", position - 1)

    def _add(self, match: re.Match[str], line: int, hits: Hits) -> None:
        group = 0
        if match.re.groups:
            group = next((number for number, text in enumerate(match.groups(), 1) if text is not None), -1)
        if group < 0:
            hits.add(None, line)
            return
        start, end = match.span(group)
        whole = whole_number(match.string, start, end, before=self._before, after=self._after)
        hits.add(match[group], line, part_of=whole)

    def _note_density(self, block: Block, matches: int) -> None:
        self._is_dense = matches * self._bytes_per_line > len(block.raw)


def _line_numbers(block: Block, betweens: list[str], tail: str) -> list[int]:
    """The line of each match, from the texts before the matches and the one after the last."""
    ends: list[int] = ["\n" in between for between in betweens]
    if sum(ends) + tail.count("\n") != block.newlines:  # between two matches is a line without one
        ends = [between.count("\n") for between in betweens]
    ends[0] += block.first_line
    return list(accumulate(ends))


def _compile(pattern: str) -> re.Pattern[str]:
    if not pattern:
        raise InvalidInput("the pattern is empty", remedy="write a regular expression such as 'loss: {number}'")
    try:
        return re.compile(pattern)
    except re.error as error:
        at = error.pos
        raise InvalidInput(
            f"the pattern is not a regular expression: {error.msg}" + ("" if at is None else f" at position {at}"),
            column=None if at is None else at + 1,
            remedy=_remedy(error.msg),
            text=pattern,
        ) from None
    except (OverflowError, RecursionError) as error:
        raise InvalidInput(
            f"the pattern is too large: {error}", remedy="use smaller repeat counts and fewer nested groups"
        ) from None


def _remedy(message: str) -> str:
    if "parenthesis" in message or "subpattern" in message:
        return "close the group, or write \\( and \\) for the characters themselves"
    if "character set" in message or "character range" in message:
        return "close the set with ], or write \\[ for the character itself"
    if "repeat" in message:
        return "write \\* \\+ or \\? for the characters themselves"
    if "escape" in message:
        return "write \\\\ for a backslash itself"
    return "correct it there; Python's `re` page describes the syntax"
