"""The lines nearest to a pattern that never matched, to help correct it."""

from __future__ import annotations

import difflib
import re
from random import Random

from benchwright.agent.extractors.base import EXAMPLE_CHARS, EXAMPLES_KEPT, Block, LogLine

_FIRST_LINES = 100  # of the log, all kept for comparison
_SAMPLED_LINES = 200  # of the rest, evenly chosen
_SAMPLED_BYTES_PER_BLOCK = 1024
_PROBES = 3
_SEARCHED_WHOLLY_BYTES = 8 << 20  # of the log; after that a part of each block
_SEARCHED_PART_BYTES = 1 << 15
_LINES_PER_PROBE = 8
_COMPARED_CLOSELY = 24
_WORD = re.compile(r"[^\W\d_]{2,}")


class LineSample:
    """A bounded number of lines of the log: the first ones and an even sample of the rest."""

    def __init__(self) -> None:
        self.lines: list[LogLine] = []
        self._seen = 0
        self._random = Random(1)  # noqa: S311 - the same log gives the same sample

    def look(self, block: Block) -> None:
        """Takes in the beginning of a block; its cost does not grow with the block."""
        start = 0
        while start <= min(_SAMPLED_BYTES_PER_BLOCK if self._seen >= _FIRST_LINES else 1 << 16, len(block.raw)):
            _, end = block.line_bounds(start)
            line = _shown(block, start, start, end)
            if line.text.strip():
                self._take(line)
            start = end + 1

    def _take(self, line: LogLine) -> None:
        self._seen += 1
        if len(self.lines) < _FIRST_LINES + _SAMPLED_LINES:
            self.lines.append(line)
            return
        place = self._random.randrange(self._seen - _FIRST_LINES)
        if place < _SAMPLED_LINES:
            self.lines[_FIRST_LINES + place] = line


class NearestLines:
    """For one pattern: looks for its words in the log until it has enough lines of each."""

    def __init__(self, fragments: tuple[str, ...]) -> None:
        self._fragments = fragments
        self._candidates: dict[int, LogLine] = {}
        words = sorted({word for fragment in fragments for word in _WORD.findall(fragment)}, key=len, reverse=True)
        # Without the first letter, so that Speed and speed are both found.
        self._probes = {
            (word[1:] if len(word) > 3 else word).encode("utf-8", "replace"): _LINES_PER_PROBE
            for word in words[:_PROBES]
        }
        self._searched_bytes = 0

    def look(self, block: Block) -> None:
        """One search for each word that is not used up yet; far into a log only in a part of a large block."""
        stop = len(block.raw) if self._searched_bytes < _SEARCHED_WHOLLY_BYTES else _SEARCHED_PART_BYTES
        self._searched_bytes += len(block.raw)
        for probe in list(self._probes):
            position = block.raw.find(probe, 0, stop)
            while position >= 0 and self._probes[probe]:
                start, end = block.line_bounds(position)
                line = _shown(block, start, position, end)
                self._candidates.setdefault(line.line, line)
                self._probes[probe] -= 1
                position = block.raw.find(probe, end, stop)
            if not self._probes[probe]:
                del self._probes[probe]

    def best(self, sample: LineSample) -> list[LogLine]:
        """At most three lines, nearest first; lines with nothing in common are left out."""
        wanted = {word.lower() for fragment in self._fragments for word in _WORD.findall(fragment)}
        goal = " ".join(self._fragments)
        candidates = {**{line.line: line for line in sample.lines}, **self._candidates}
        ranked = sorted(candidates.values(), key=lambda line: (-_shared(wanted, line.text), line.line))
        close = [line for line in ranked[:_COMPARED_CLOSELY] if _shared(wanted, line.text) or not wanted]
        close.sort(key=lambda line: (-_shared(wanted, line.text), -_likeness(goal, line.text), line.line))
        return close[:EXAMPLES_KEPT]


def _shown(block: Block, start: int, position: int, end: int) -> LogLine:
    """What is shown of the line from `start` to `end`: its beginning, or what is around a far `position` in it."""
    if position - start > EXAMPLE_CHARS // 2:
        start = position - EXAMPLE_CHARS // 2
    raw = block.raw[start : min(end, start + 4 * EXAMPLE_CHARS)]
    return LogLine(block.line_at(start), Block(raw).numbered.rstrip("\r")[:EXAMPLE_CHARS])


def _shared(wanted: set[str], text: str) -> int:
    """Letters of the wanted words that the line has too."""
    return sum(len(word) for word in wanted.intersection(word.lower() for word in _WORD.findall(text)))


def _likeness(goal: str, text: str) -> float:
    return difflib.SequenceMatcher(None, goal, text, autojunk=False).ratio()
