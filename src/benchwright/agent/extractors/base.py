"""The extractor seam: what it gets, what it returns, and what it must be.

An extractor is one file with a class that is built from the text a user wrote (a pattern, a key) and scans
blocks of whole lines. It is registered under its kind in the entry-point group `benchwright.extractors`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol

import msgspec

from benchwright.agent.extractors.numbers import read_number, read_numbers

ENTRY_POINT_GROUP = "benchwright.extractors"
EXAMPLES_KEPT = 3
EXAMPLE_CHARS = 200
_STRETCH_BYTES = 1 << 14

# Colours, cursor movements, window titles. None can reach over the end of a line.
ESCAPE_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n\r]*(?:\x07|\x1b\\)|[()*+][0-9A-Za-z]|[=>78@-Z\\^_])"
)


class MetricValues(msgspec.Struct, frozen=True, kw_only=True):
    """Values of one metric, in the order of the log, and the line (from 1) that each was on."""

    name: str
    values: list[float]
    lines: list[int]


class LogLine(msgspec.Struct, frozen=True):
    """A line shown to the user as evidence, cut to `EXAMPLE_CHARS`."""

    line: int
    text: str


class Block:
    """Whole lines of a log: `raw` is their bytes, without the end of the last one.

    `text` is what patterns are matched on: decoded, without terminal escape sequences, with `\\n` between lines. A
    line that a progress bar rewrote with carriage returns is several lines of `text`, but has one number: `numbered` has
    the same length as `text` and still holds the `\\r` there. Both are made only when asked for.
    """

    def __init__(self, raw: bytes, first_line: int = 1) -> None:
        self.raw = raw
        self.first_line = first_line
        self.decoded: dict[int, Any] = {}  # JSON objects by position, so that several keys cost one decoding
        self._line_ends: list[int] = []  # before each whole stretch of raw

    @cached_property
    def numbered(self) -> str:
        text = self.raw.decode("utf-8", "replace")
        if "\r" in text:
            text = text.replace("\r\n", "\n")
        return ESCAPE_SEQUENCE.sub("", text) if "\x1b" in text else text

    @cached_property
    def text(self) -> str:
        return self.numbered.replace("\r", "\n") if "\r" in self.numbered else self.numbered

    @property
    def is_plain(self) -> bool:
        """Each line of `text` is a line of the log."""
        return self.text is self.numbered

    @cached_property
    def has_escapes(self) -> bool:
        return b"\x1b" in self.raw

    @cached_property
    def folded(self) -> bytes | None:
        """`raw` in lower case, where that is all that ignoring case means: in ASCII."""
        return self.raw.lower() if self.raw.isascii() else None

    @cached_property
    def newlines(self) -> int:
        """How many line ends are inside."""
        return self.line_at(len(self.raw)) - self.first_line

    def line_at(self, position: int) -> int:
        """The number of the line at a position of `raw`. Lines are counted only once, however often this is called."""
        stretch = position // _STRETCH_BYTES
        while len(self._line_ends) <= stretch:
            done = len(self._line_ends)
            before = self._line_ends[-1] if done else 0
            self._line_ends.append(
                before + self.raw.count(b"\n", max(done - 1, 0) * _STRETCH_BYTES, done * _STRETCH_BYTES)
            )
        return self.first_line + self._line_ends[stretch] + self.raw.count(b"\n", stretch * _STRETCH_BYTES, position)

    def line_bounds(self, position: int) -> tuple[int, int]:
        """Where the line around a position of `raw` begins and ends."""
        end = self.raw.find(b"\n", position)
        return self.raw.rfind(b"\n", 0, position) + 1, len(self.raw) if end < 0 else end

    def line(self, start: int, end: int) -> Block:
        """One line by itself; `start` and `end` are its bounds."""
        if end < len(self.raw) and self.raw.endswith(b"\r", start, end):
            end -= 1  # it ends with \r\n
        return Block(self.raw[start:end], self.line_at(start))

    def after(self, position: int) -> Block:
        """The rest, from the start of a line."""
        return Block(self.raw[position:], self.line_at(position))

    def single_lines(self) -> Iterator[Block]:
        """Each line, and each part that a carriage return ended, by itself."""
        start = 0
        while start <= len(self.raw):
            _, end = self.line_bounds(start)
            line = self.line(start, end)
            for part in line.raw.split(b"\r"):
                yield Block(part, line.first_line)
            start = end + 1


class Hits:
    """Result of one scan: numbers with their lines, matches that are no numbers, and matches that are part of one."""

    __slots__ = ("examples", "lines", "partial", "partial_examples", "unparsed", "values")

    def __init__(self) -> None:
        self.values: list[float] = []
        self.lines: list[int] = []
        self.unparsed = 0
        self.examples: list[LogLine] = []
        self.partial = 0
        self.partial_examples: list[LogLine] = []

    def add(self, text: str | None, line: int, *, part_of: str | None = None) -> None:
        """One match; `text` is what should be a number, None if the group took no part in the match.

        `part_of`: the number in the log that `text` is only part of.
        """
        value = None if text is None else read_number(text)
        if value is None:
            self.reject(text or "", line)
        else:
            self.values.append(value)
            self.lines.append(line)
            if part_of is not None:
                self.partial += 1
                if len(self.partial_examples) < EXAMPLES_KEPT:
                    self.partial_examples.append(LogLine(line, f"{part_of} read as {text}"[:EXAMPLE_CHARS]))

    def add_all(self, texts: Sequence[str | None], lines: list[int]) -> None:
        """Many matches at once; as fast as they can be turned into numbers."""
        values = read_numbers(texts)
        if values is None:
            for text, line in zip(texts, lines, strict=True):
                self.add(text, line)
            return
        self.values += values
        self.lines += lines

    def reject(self, text: str, line: int) -> None:
        """A match that is not a number: counted, and the first ones kept as examples."""
        self.unparsed += 1
        if len(self.examples) < EXAMPLES_KEPT:
            self.examples.append(LogLine(line, text[:EXAMPLE_CHARS]))

    def extend(self, other: Hits) -> None:
        """The hits of a later part of the log."""
        self.values += other.values
        self.lines += other.lines
        self.extend_totals(other)

    def extend_totals(self, other: Hits) -> None:
        """The same without the values."""
        self.unparsed += other.unparsed
        self.examples = (self.examples + other.examples)[:EXAMPLES_KEPT]
        self.partial += other.partial
        self.partial_examples = (self.partial_examples + other.partial_examples)[:EXAMPLES_KEPT]


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
