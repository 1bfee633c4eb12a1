"""Lines that come nearest to a pattern that never matched: the evidence for the one who has to correct it."""

from __future__ import annotations

import difflib
import re
from random import Random

from benchwright.agent.extractors.base import EXAMPLE_CHARS, EXAMPLES_KEPT, Block, LogLine

_FIRST_LINES = 100  # of the log, all kept for comparison
_SAMPLED_LINES = 200  # of the rest, evenly chosen
_SAMPLED_BYTES_PER_BLOCK = 4096
_PROBES = 3
_LINES_PER_PROBE = 8
_COMPARED_CLOSELY = 24
_WORD = re.compile(r"[^\W\d_]{2,}")


class LineSample:
    """Some lines of the log, a bounded number, whatever its length: the first ones and an even sample of the rest."""

    def __init__(self) -> None:
        self.lines: list[LogLine] = []
        self._seen = 0
        self._random = Random(1)  # noqa: S311 - the same log gives the same sample

    def look(self, block: Block) -> None:
        """Takes in the beginning of a block; its cost does not grow with the block."""
        line, start = block.first_line, 0
        while start <= _SAMPLED_BYTES_PER_BLOCK or self._seen < _FIRST_LINES:
            end = block.text.find("\n", start)
            text = block.text[start : min(end, start + EXAMPLE_CHARS) if end >= 0 else start + EXAMPLE_CHARS]
            if text.strip():
                self._take(LogLine(line, text))
            if end < 0:
                return
            line = block.line_at(end + 1, counted_to=start, line=line)
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
        self._probes = {word[1:] if len(word) > 3 else word: _LINES_PER_PROBE for word in words[:_PROBES]}

    def look(self, block: Block) -> None:
        """One search for each word that is not used up yet."""
        for probe in list(self._probes):
            position = block.text.find(probe)
            while position >= 0:
                start = block.text.rfind("\n", 0, position) + 1
                end = block.text.find("\n", position)
                line = block.line_at(start)
                shown_from = (
                    max(start, position - EXAMPLE_CHARS // 2) if position - start > EXAMPLE_CHARS // 2 else start
                )
                shown_to = shown_from + EXAMPLE_CHARS if end < 0 else min(end, shown_from + EXAMPLE_CHARS)
                self._candidates.setdefault(line, LogLine(line, block.text[shown_from:shown_to]))
                self._probes[probe] -= 1
                if not self._probes[probe]:
                    del self._probes[probe]
                    break
                position = block.text.find(probe, end) if end >= 0 else -1

    def best(self, sample: LineSample) -> list[LogLine]:
        """At most three lines, nearest first; lines without anything in common are not evidence."""
        wanted = {word.lower() for fragment in self._fragments for word in _WORD.findall(fragment)}
        goal = " ".join(self._fragments)
        candidates = {**{line.line: line for line in sample.lines}, **self._candidates}
        ranked = sorted(candidates.values(), key=lambda line: (-_shared(wanted, line.text), line.line))
        close = [line for line in ranked[:_COMPARED_CLOSELY] if _shared(wanted, line.text) or not wanted]
        close.sort(key=lambda line: (-_shared(wanted, line.text), -_likeness(goal, line.text), line.line))
        return close[:EXAMPLES_KEPT]


def _shared(wanted: set[str], text: str) -> int:
    """Letters of the wanted words that the line has too."""
    return sum(len(word) for word in wanted.intersection(word.lower() for word in _WORD.findall(text)))


def _likeness(goal: str, text: str) -> float:
    return difflib.SequenceMatcher(None, goal, text, autojunk=False).ratio()
