"""Reads all metrics of a job out of its log while the log grows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchwright.agent.extractors.base import Block, Extractor, Hits, LogLine, MetricValues
from benchwright.agent.extractors.lines import LINE_LIMIT_BYTES, LineCutter, make_block
from benchwright.agent.extractors.nearest import LineSample, NearestLines
from benchwright.agent.extractors.registry import EXTRACTORS
from benchwright.agent.extractors.time_limit import CutOff, TimeLimit, chosen_limit_s
from benchwright.core.errors import InvalidInput
from benchwright.core.metric import MetricSpec
from benchwright.core.secrets.redact import redact_text

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
