"""Records behind an identifier: `Caffe2Observer {…}`, `PyTorchObserver {…}`, and the text form of 2018.

The text form is a block for each iteration: `Caffe2Observer Delay Start`, rows `Caffe2Observer NAME - 12.3 (us)`,
`Caffe2Observer Delay End`. NET_DELAY is the net. In a block with operators it is the time of a profiled call, which is kept
apart; so is that of a block whose end is missing, which may have had operators.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from benchwright.kinds.spec.observers.records import NET, Observed, ObserverRecord, PrintedLine, number_in

CAFFE2, PYTORCH = "Caffe2Observer", "PyTorchObserver"
LATENCY = "latency"
PROFILED = "latency.profiled"  # of the net while its operators are timed
_NET_DELAY = "NET_DELAY"
_BLOCK = re.compile(r"(\S+) (Start|End)\s*")
_ROW = re.compile(r"(\S.*?)\s+-\s+(\S+)\s*\(([^()]*)\)\s*")
_LONGEST_ROW = 4096
_DECODER = json.JSONDecoder()


def identified_records(lines: Iterable[PrintedLine], identifiers: Sequence[str]) -> Observed:
    """Every record behind one of the identifiers, wherever in a line it is."""
    observed = Observed()
    blocks = _Blocks(observed)
    found = re.compile("|".join(map(re.escape, sorted(identifiers, key=len, reverse=True))))
    for line in lines:
        position = 0
        while (match := found.search(line.text, position)) is not None:
            following = found.search(line.text, match.end())
            until = following.start() if following is not None else len(line.text)
            position = _read(line, match.end(), until, observed, blocks)
    blocks.close(whole=False)
    return observed


def json_lines(lines: Iterable[PrintedLine]) -> Observed:
    """Lines that are JSON: an object, or a list of them."""
    observed = Observed()
    for line in lines:
        text = line.text.strip()
        if text[:1] not in ("{", "["):
            continue
        try:
            value = _DECODER.decode(text)
        except (ValueError, RecursionError):
            if text.startswith("{"):  # `[INFO] …` is a log line
                observed.reject(line.number, text, _why(line))
            continue
        if isinstance(value, dict) or (isinstance(value, list) and all(isinstance(v, dict) for v in value)):
            observed.add_json(value, line.number)
    return observed


def _read(line: PrintedLine, start: int, until: int, observed: Observed, blocks: _Blocks) -> int:
    """Reads what follows an identifier; returns where to look for the next one."""
    text = line.text
    begin = next((i for i in range(start, len(text)) if text[i] not in " \t:="), len(text))
    if not text.startswith(("{", "["), begin):
        blocks.add(text[start:until].strip(" \t:\r"), line)
        return until
    try:
        value, end = _DECODER.raw_decode(text, begin)
    except (ValueError, RecursionError):
        observed.reject(line.number, text[begin:until], _why(line))
        return until
    observed.add_json(value, line.number)
    return end


def _why(line: PrintedLine) -> str:
    return "is cut off" if line.cut else "is not JSON"


class _Blocks:
    """Rows of the text form, gathered until their block ends."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed
        self._rows: list[ObserverRecord] = []
        self._inside = False

    def add(self, text: str, line: PrintedLine) -> None:
        if (edge := _BLOCK.fullmatch(text)) is not None:
            self.close(whole=edge[2] == "End")
            self._inside = edge[2] == "Start"
            return
        row = _ROW.fullmatch(text) if len(text) <= _LONGEST_ROW else None
        number = number_in(row[2]) if row is not None else None
        if row is None or number is None:
            if row is not None or " - " in text or line.cut:
                self._observed.reject(line.number, text, "is cut off" if line.cut else "holds no number")
            return
        name = row[1]
        record = ObserverRecord(
            type=NET if name == _NET_DELAY else name,
            metric=LATENCY,
            unit=row[3].strip() or None,
            values=(number,),
            line=line.number,
        )
        self._rows.append(record)
        if not self._inside:  # no block around it
            self.close(whole=True)

    def close(self, *, whole: bool) -> None:
        """Ends the block, if there is one. Without its end it may have had operators."""
        apart = self._inside and (not whole or any(row.type != NET for row in self._rows))
        for row in self._rows:
            profiled = apart and row.type == NET
            self._observed.records.append(
                ObserverRecord(
                    type=row.type,
                    metric=PROFILED if profiled else row.metric,
                    unit=row.unit,
                    values=row.values,
                    line=row.line,
                )
            )
        self._rows, self._inside = [], False
