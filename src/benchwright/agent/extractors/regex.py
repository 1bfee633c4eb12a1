"""Python regular expressions: results as if matched line by line, at the speed of scanning blocks."""

from __future__ import annotations

import re
import warnings
from itertools import accumulate

from benchwright.agent.extractors.base import Block, Hits
from benchwright.agent.extractors.numbers import may_be_cut, whole_number
from benchwright.agent.extractors.pattern_tree import understand
from benchwright.core.errors import InvalidInput
from benchwright.core.numbers.pattern import first_group, open_sides, with_numbers

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
