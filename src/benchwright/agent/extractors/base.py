"""The seam: what an extractor is given, what it returns, and what it must be.

An extractor is one file with a class that is built from the text a user wrote (a pattern, a key) and scans
blocks of whole lines. It is registered under its kind in the entry-point group `benchwright.extractors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import msgspec

from benchwright.agent.extractors.numbers import read_number

ENTRY_POINT_GROUP = "benchwright.extractors"
EXAMPLES_KEPT = 3
EXAMPLE_CHARS = 200


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Values of one metric, in the order of the log, and the line (from 1) that each was on."""

    name: str
    values: list[float]
    lines: list[int]


class LogLine(msgspec.Struct, frozen=True):
    """A line shown to the user as evidence, cut to `EXAMPLE_CHARS`."""

    line: int
    text: str


class Block:
    """Whole lines of a log as text, joined by `\\n`, without one at the end.

    A line that a progress bar rewrote with carriage returns is several lines of `text`, but one line for
    `line_at`: `numbered` has the same length as `text` and still holds the `\\r` there.
    """

    def __init__(self, text: str, *, first_line: int = 1, numbered: str | None = None) -> None:
        self.text = text
        self.first_line = first_line
        self.numbered = text if numbered is None else numbered
        self.decoded: dict[int, Any] = {}  # JSON objects by position, so that several keys cost one decoding

    @property
    def is_plain(self) -> bool:
        """Each line of `text` is a line of the log."""
        return self.numbered is self.text

    @cached_property
    def newlines(self) -> int:
        """How many line ends of the log are inside."""
        return self.numbered.count("\n")

    @cached_property
    def folded(self) -> str | None:
        """`text` in lower case, where that keeps every position and is all that ignoring case means: in ASCII."""
        return self.text.lower() if self.text.isascii() else None

    def line_at(self, position: int, *, counted_to: int = 0, line: int | None = None) -> int:
        """The log's line number at `position`; faster if `line` is known at `counted_to`, before it."""
        start = self.first_line if line is None else line
        return start + self.numbered.count("\n", counted_to, position)

    def after(self, position: int, line: int) -> Block:
        """The rest, from a line's start at `position`, whose number is `line`."""
        rest = self.text[position:]
        return Block(rest, first_line=line, numbered=None if self.is_plain else self.numbered[position:])

    def single_lines(self) -> list[Block]:
        """A block for each line, for the case that one of them must be treated by itself."""
        blocks, position, line = [], 0, self.first_line
        for text in self.text.split("\n"):
            blocks.append(Block(text, first_line=line))
            position += len(text) + 1
            line += self.numbered.count("\n", position - 1, position)
        return blocks


class Hits:
    """What one scan found: numbers with their lines, and matches that were no number."""

    __slots__ = ("examples", "lines", "unparsed", "values")

    def __init__(self) -> None:
        self.values: list[float] = []
        self.lines: list[int] = []
        self.unparsed = 0
        self.examples: list[LogLine] = []

    def add(self, text: str | None, line: int) -> None:
        """One match; `text` is what should be a number, None if the group took no part in the match."""
        value = None if text is None else read_number(text)
        if value is None:
            self.reject(text or "", line)
        else:
            self.values.append(value)
            self.lines.append(line)

    def add_all(self, texts: Sequence[str | None], lines: list[int]) -> None:
        """Many matches at once; as fast as they can be turned into numbers."""
        try:
            values = list(map(float, texts))  # type: ignore[arg-type]
        except (ValueError, TypeError):
            for text, line in zip(texts, lines, strict=True):
                self.add(text, line)
            return
        self.values += values
        self.lines += lines

    def reject(self, text: str, line: int) -> None:
        """A match that is no number: counted, and the first ones kept to be shown."""
        self.unparsed += 1
        if len(self.examples) < EXAMPLES_KEPT:
            self.examples.append(LogLine(line, text[:EXAMPLE_CHARS]))

    def extend(self, other: Hits) -> None:
        """The hits of a later part of the log."""
        self.values += other.values
        self.lines += other.lines
        self.unparsed += other.unparsed
        self.examples = (self.examples + other.examples)[:EXAMPLES_KEPT]


class Extractor(Protocol):
    """Finds numbers in blocks of lines.

    Built from the user's text alone: `Extractor(pattern)`, raising InvalidInput if it makes no sense. The hits of a
    block are those of its lines taken one by one. State may make it faster, never change what is found;
    a scan may be abandoned at any instruction and repeated line by line.
    """

    fragments: tuple[str, ...]  # literal text that a matching line is likely to hold, for the nearest lines

    def scan(self, block: Block) -> Hits:
        """All hits of the block, in order."""
        ...
