"""Reads all metrics of a job out of its log while the log grows."""

from __future__ import annotations

import difflib
import os
import re
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from types import FrameType, TracebackType
from typing import Any, TypeVar

from benchwright.agent.extractors.base import (
    EXAMPLE_CHARS,
    EXAMPLES_KEPT,
    Block,
    Extractor,
    Hits,
    LogLine,
    MetricValues,
)
from benchwright.agent.extractors.registry import EXTRACTORS
from benchwright.core.errors import InvalidInput
from benchwright.core.metric import MetricSpec
from benchwright.core.secrets import redact_text

# Cuts a growing log into blocks of whole lines.


LINE_LIMIT_BYTES = 1 << 20  # of an unfinished line; a longer one is cut into pieces
SLICE_BYTES = 1 << 18  # scanned at a time: stays in the cache of the processor for all patterns


class LineCutter:
    """Holds back the unfinished line, at most `line_limit_bytes` of it.

    A line ends with `\\n` or `\\r\\n`; a lone `\\r` (a progress bar) ends a part that is matched by itself. How the
    log is split over calls does not change the result.
    """

    def __init__(self, line_limit_bytes: int = LINE_LIMIT_BYTES) -> None:
        self.long_lines = 0
        self._limit = line_limit_bytes
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._in_long_line = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Pieces that consist of whole lines, their ends included, or are a part of one that is too long."""
        step = min(SLICE_BYTES, self._limit)
        if len(data) <= step:
            yield from self._feed(data)
            return
        for start in range(0, len(data), step):
            yield from self._feed(data[start : start + step])

    def close(self) -> bytes:
        """The last line, which had no end; empty if there is none."""
        return self._take_pending()

    def _feed(self, data: bytes) -> Iterator[bytes]:
        if self._pending and self._pending[-1].endswith(b"\r"):
            data = self._take_pending() + data  # now it shows whether \r or \r\n
        cut = _end_of_lines(data)
        first = _first_line_bytes(data, cut)
        if self._pending_bytes + first > self._limit:
            first += self._pending_bytes
            yield from self._feed_long(self._take_pending() + data, first)
            return
        if cut:
            self._in_long_line = False
            yield self._take_pending() + data[:cut] if self._pending else data[:cut]
            data = data[cut:]
        if data:
            self._pending.append(data)
            self._pending_bytes += len(data)

    def _feed_long(self, data: bytes, first: int) -> Iterator[bytes]:
        """The first line of `data` has `first` bytes, beyond the limit: cut it there, and go on with the rest."""
        start = 0
        while first - start > self._limit:
            end = _character_start(data, start + self._limit)
            self.long_lines += not self._in_long_line
            self._in_long_line = True
            yield data[start:end]
            start = end
        yield from self._feed(data[start:])

    def _take_pending(self) -> bytes:
        data = b"".join(self._pending)
        self._pending = []
        self._pending_bytes = 0
        return data


def _end_of_lines(data: bytes) -> int:
    """Where the unfinished line begins. A `\\r` at the very end may become `\\r\\n`, so it ends nothing yet."""
    newline = data.rfind(b"\n")
    return max(newline, data.rfind(b"\r", newline + 1, max(len(data) - 1, 0))) + 1


def _first_line_bytes(data: bytes, cut: int) -> int:
    """Length of the first line of data, without its end; `cut` is 0 if no line ends in it."""
    if not cut:
        return len(data) - data.endswith(b"\r")
    newline = data.find(b"\n")
    carriage = data.find(b"\r", 0, newline if newline >= 0 else cut)
    return carriage if carriage >= 0 else newline


def _character_start(data: bytes, position: int) -> int:
    """`position`, or up to three bytes before it, so that no UTF-8 character is cut in two."""
    for start in range(position, position - 4, -1):
        if data[start] & 0xC0 != 0x80:
            return start
    return position


def make_block(piece: bytes, first_line: int) -> Block:
    """The lines of a piece, the first of which has that number."""
    for end in (b"\r\n", b"\n", b"\r"):
        if piece.endswith(end):
            return Block(piece[: -len(end)], first_line)
    return Block(piece, first_line)


# The lines nearest to a pattern that never matched, to help correct it.


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
            line = _shown_line(block, start, start, end)
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
                line = _shown_line(block, start, position, end)
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


def _shown_line(block: Block, start: int, position: int, end: int) -> LogLine:
    """The line from `start` to `end`, shortened: its beginning, or the text around a far `position`."""
    if position - start > EXAMPLE_CHARS // 2:
        start = position - EXAMPLE_CHARS // 2
    raw = block.raw[start : min(end, start + 4 * EXAMPLE_CHARS)]
    return LogLine(block.line_at(start), Block(raw).numbered.rstrip("\r")[:EXAMPLE_CHARS])


def _shared(wanted: set[str], text: str) -> int:
    """Letters of the wanted words that the line has too."""
    return sum(len(word) for word in wanted.intersection(word.lower() for word in _WORD.findall(text)))


def _likeness(goal: str, text: str) -> float:
    return difflib.SequenceMatcher(None, goal, text, autojunk=False).ratio()


# Stops a match that takes too long.
#
# Why: a pattern such as `(a+)+b` can take years on one line of a log, and `re` has no time limit of its own. Its engine checks
# for signals while it backtracks, so a signal handler that raises ends the match. The timer counts this process's CPU time
# (ITIMER_VIRTUAL, SIGVTALRM): waiting for a core on a busy machine does not count, and nobody else's alarm is disturbed.
# Limits: the main thread only, because signals arrive there; and code that is not ours is not interrupted, because it may hold
# a lock, so an extractor of another package ends at its next line of Python in this package.
# Switch: BENCHWRIGHT_MATCH_LIMIT=SECONDS, for one line; `off` sets no timer, and then such a pattern never ends.


T = TypeVar("T")
_OUR_CODE = __name__.rpartition(".")[0]  # this package: the engine runs inside a frame of it
_AGAIN_S = 0.005
SWITCH = "BENCHWRIGHT_MATCH_LIMIT"


def chosen_limit_s(default_s: float) -> float | None:
    """The limit set by the switch; None: no limit."""
    text = os.environ.get(SWITCH, "")
    if text == "off":
        return None
    try:
        return max(float(text), 0.001)
    except ValueError:
        return default_s


class CutOff(Exception):
    """The work took longer than its limit."""


class TimeLimit:
    """`with limit: limit.run(work)`: signal handler and timer are ours inside, and put back after.

    Outside the main thread `with` raises RuntimeError: no pattern of a user runs without a limit by accident.
    `seconds`: None: no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._is_armed = False
        self._handler_before: Any = None
        self._timer_before = (0.0, 0.0)

    def __enter__(self) -> TimeLimit:
        if self._seconds is None:
            return self
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError(
                "a log is scanned in the main thread only, where a pattern that never ends can be stopped"
            )
        self._handler_before = signal.signal(signal.SIGVTALRM, self._on_signal)
        self._timer_before = signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._seconds is None:
            return
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        # None: it was not set from Python, and cannot be put back from there.
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL if self._handler_before is None else self._handler_before)
        if self._timer_before[0]:
            signal.setitimer(signal.ITIMER_VIRTUAL, *self._timer_before)

    def run(self, work: Callable[[], T]) -> T:
        """The result of `work`, or CutOff after the limit."""
        if self._seconds is None:
            return work()
        try:
            self._is_armed = True
            signal.setitimer(signal.ITIMER_VIRTUAL, self._seconds)
            result = work()
            self._is_armed = False
            return result
        finally:
            self._is_armed = False  # from here on a signal that is late is ignored
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if not self._is_armed:
            return
        if frame is None or not frame.f_globals.get("__name__", "").startswith(_OUR_CODE):
            # Code that is not ours may hold a lock, which an exception would leave locked forever.
            signal.setitimer(signal.ITIMER_VIRTUAL, _AGAIN_S)
            return
        self._is_armed = False
        raise CutOff


CUT_OFFS_ALLOWED = 3  # then the pattern is given up
_MATCH_LIMIT_S = 1.0


class LogScanner:
    """Takes the bytes of a log in any portions; returns values as their lines become complete.

    Memory is bounded. `match_limit_s`: CPU time for one line. Works in the main thread only (see TimeLimit). Raises
    InvalidInput, naming the metric, for an unusable pattern.
    """

    def __init__(
        self,
        metrics: Sequence[MetricSpec],
        *,
        match_limit_s: float | None = None,
        line_limit_bytes: int = LINE_LIMIT_BYTES,
    ) -> None:
        self._watches = _watches(metrics)
        self._order = list(dict.fromkeys(metric.name for metric in metrics))
        self._cutter = LineCutter(line_limit_bytes)
        self._limit = TimeLimit(chosen_limit_s(_MATCH_LIMIT_S) if match_limit_s is None else match_limit_s)
        self._sample = LineSample()
        self._bytes = 0
        self._line = 1
        self._ends_inside_line = False

    def feed(self, block: bytes) -> list[MetricValues]:
        """The values of all lines that are complete with these bytes."""
        self._bytes += len(block)
        return self._scan(self._cutter.feed(block))

    def close(self) -> list[MetricValues]:
        """The values of the last line, if the log did not end with a line end."""
        rest = self._cutter.close()
        return self._scan([rest] if rest else [])

    def summary(self) -> dict[str, object]:
        """The totals, for the `extraction` event."""
        metrics = {name: watch.summary(self._sample) for watch in self._watches for name in watch.names}
        return {
            "metrics": {name: metrics[name] for name in self._order},
            "lines": self._line - 1 + self._ends_inside_line,
            "bytes": self._bytes,
            "long_lines": self._cutter.long_lines,
        }

    def _scan(self, pieces: Iterable[bytes]) -> list[MetricValues]:
        hits = {name: Hits() for name in self._order}
        with self._limit:
            for piece in pieces:
                block = make_block(piece, self._line)
                for watch in self._watches:
                    found = watch.scan(block, self._limit)
                    for name in watch.names:
                        hits[name].extend(found)
                self._look_for_evidence(block)
                ended = piece.endswith(b"\n")
                self._line = block.first_line + block.newlines + ended
                self._ends_inside_line = not ended
        return [MetricValues(name=name, values=h.values, lines=h.lines) for name, h in hits.items() if h.values]

    def _look_for_evidence(self, block: Block) -> None:
        unmatched = [watch for watch in self._watches if not watch.matches]
        if unmatched:
            self._sample.look(block)
        for watch in unmatched:
            watch.nearest.look(block)


class _Watch:
    """One pattern, for one or more metrics."""

    def __init__(self, extractor: Extractor) -> None:
        self.names: list[str] = []
        self.matches = 0
        self.nearest = NearestLines(extractor.fragments)
        self._extractor = extractor
        self._found = Hits()  # totals and examples only
        self._cut_off_lines: list[int] = []

    @property
    def _is_given_up(self) -> bool:
        return len(self._cut_off_lines) >= CUT_OFFS_ALLOWED

    def scan(self, block: Block, limit: TimeLimit) -> Hits:
        """The hits of the block; a line on which the pattern takes too long is left out and noted."""
        if self._is_given_up:
            return Hits()
        try:
            hits = limit.run(lambda: self._extractor.scan(block))
        except CutOff:
            hits = self._scan_line_by_line(block, limit)
        self.matches += len(hits.values) + hits.unparsed
        self._found.extend_totals(hits)
        return hits

    def _scan_line_by_line(self, block: Block, limit: TimeLimit) -> Hits:
        hits = Hits()
        for line in block.single_lines():
            try:
                hits.extend(limit.run(lambda line=line: self._extractor.scan(line)))  # type: ignore[misc]
            except CutOff:
                self._cut_off_lines.append(line.first_line)
                if self._is_given_up:
                    break
        return hits

    def summary(self, sample: LineSample) -> dict[str, object]:
        nearest = [] if self.matches else self.nearest.best(sample)
        return {
            "matches": self.matches - self._found.unparsed,
            "unparsed": self._found.unparsed,
            "partial": self._found.partial,
            "cut_off": len(self._cut_off_lines),
            "nearest": _shown(nearest),
            "unparsed_examples": _shown(self._found.examples),
            "partial_examples": _shown(self._found.partial_examples),
            "cut_off_lines": self._cut_off_lines,
            "given_up": self._is_given_up,
        }


def _shown(lines: Sequence[LogLine]) -> list[dict[str, object]]:
    return [{"line": line.line, "text": redact_text(line.text)} for line in lines]


def _watches(metrics: Sequence[MetricSpec]) -> list[_Watch]:
    """One for each different pattern; several metrics may share it."""
    watches: dict[tuple[str, str], _Watch] = {}
    taken: set[str] = set()
    for metric in metrics:
        key = (metric.kind, metric.pattern)
        if key not in watches:
            watches[key] = _Watch(_build(metric))
        if metric.name in taken and metric.name not in watches[key].names:
            raise InvalidInput(
                f"two metrics are named '{metric.name}' but have different patterns", remedy="give one another name"
            )
        if metric.name not in taken:
            watches[key].names.append(metric.name)
        taken.add(metric.name)
    return list(watches.values())


def _build(metric: MetricSpec) -> Extractor:
    try:
        return EXTRACTORS.load(metric.kind)(metric.pattern)
    except InvalidInput as error:
        raise InvalidInput(
            error.what,
            where=f"metric '{metric.name}'",
            column=error.column,
            remedy=error.remedy,
            text=error.text,
        ) from None
