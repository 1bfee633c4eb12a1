"""The events of the stream, and how they become lines. The format: docs/reference/event-stream.md."""

from __future__ import annotations

import json
import os
import sys
import time
from array import array
from binascii import a2b_base64, b2a_base64
from functools import lru_cache
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from benchprobe.stream.columns import Columns, Given, beginning, columns

STREAM_VERSION = 1
MAX_ENTRIES_PER_LINE = 1536  # bounds how long formatting a line holds the GIL
MANY_VALUES = 256
STEPS_PER_LINE = 8192  # in groups

Event = Dict[str, Any]
Items = Union[None, int, List[Optional[int]]]
Group = Tuple[
    int, int, int
]  # steps that share their stamps: how many, the end of the last, how long the first waited for data

_encode = json.JSONEncoder(separators=(",", ":")).encode


class Chunk:
    """Consecutive steps of one loop, in one phase, without any work of the probe between them.

    The loop's thread appends to `entries` (see `columns`) and `sizes`; the writer's thread reads them and alone touches
    `written` and `steps_written`. `hold`: not to be read until `closed`, since a device still computes some of its values.
    `groups`: for steps too short to stamp one by one. Then `device_ns` has one number for each group, and `entries`
    has pairs of a step and what it gave.
    """

    __slots__ = tuple(
        "ask batch_size closed device_ns device_stride entries first groups hold last_end loop phase sizes steps_written window_ns written".split()
    )

    def __init__(self, loop: int, first: int, phase: str, ask: int, batch_size: Optional[int]) -> None:
        self.loop, self.first, self.phase, self.ask = loop, first, phase, ask
        self.entries: List[Any] = []
        self.sizes: List[Optional[int]] = []
        self.batch_size = batch_size
        self.hold = self.closed = False
        self.device_ns: Optional[List[int]] = None
        self.window_ns: Optional[int] = None
        self.groups: Optional[List[Group]] = None
        self.device_stride = 1
        self.written = self.steps_written = 0
        self.last_end = ask

    def items(self, begin: int, end: int) -> Items:
        """The items of some of its steps: one number if all are equal, else a list; None if unknown."""
        if self.batch_size is not None:
            return self.batch_size
        sizes = self.sizes[begin:end]
        if not sizes:
            return None
        return sizes[0] if sizes.count(sizes[0]) == len(sizes) else sizes


def line(event: Event, process: int) -> bytes:
    """The event as a line of the stream."""
    return (_encode({"event": event["event"], "process": process, **event}) + "\n").encode()


def steps_lines(chunk: Chunk, process: int, max_line_bytes: int) -> Iterator[bytes]:
    """Lines for the complete steps of `chunk` that have not been written."""
    if chunk.groups is not None:
        yield from _lines_of_groups(chunk, chunk.groups, process) if chunk.closed else ()
        return
    take = usual = min(MAX_ENTRIES_PER_LINE, max_line_bytes // 16)
    while chunk.written < len(chunk.entries):
        entries = chunk.entries[chunk.written : chunk.written + take]
        if chunk.hold and not chunk.closed:
            return  # checked after taking the entries: whoever adds such values sets it first
        part = columns(entries, chunk.last_end)
        if not part.step_ns:
            if chunk.written + take >= len(chunk.entries):
                return
            take *= 2  # one step gave more than this
            continue
        take = usual
        made = _steps_line(chunk, part, process)
        while len(made) > max_line_bytes and len(part.step_ns) > 1:
            part = columns(beginning(entries, len(part.step_ns) // 2), chunk.last_end)
            made = _steps_line(chunk, part, process)
        chunk.written += part.entries
        chunk.steps_written += len(part.step_ns)
        chunk.last_end = part.end
        yield made


def _steps_line(chunk: Chunk, part: Columns, process: int) -> bytes:
    end = chunk.steps_written + len(part.step_ns)
    device_ns = [] if chunk.device_ns is None else chunk.device_ns[chunk.steps_written : end]
    texts = _integers(part.step_ns), _integers(part.wait_ns), _integers(device_ns)
    return _line_of(chunk, end, texts, part.given, sum(device_ns), process)


def _line_of(chunk: Chunk, end: int, columns: Sequence[str], given: Given, device_ns: int, process: int) -> bytes:
    """Formatted by hand, which takes two thirds of an encoder's time: this is most of the writer's work."""
    begin = chunk.steps_written
    text = (
        f'{{"event":"steps","process":{process},"loop":{chunk.loop},"first":{chunk.first + begin},'
        f'"phase":"{chunk.phase}","t":{chunk.last_end},"step_ns":[{columns[0]}],'
        f'"wait_ns":[{columns[1]}],"items":{_encode(chunk.items(begin, end))}'
    )
    if given:
        values_of = (
            f"{_encode(name)}:[{_one_each(values) if type(of) is range else _encode([of, values])[1:-1]}]"
            for name, (of, values) in given.items()
        )
        text += f',"given":{{{",".join(values_of)}}}'
    if chunk.device_ns is not None and chunk.window_ns is not None:
        share = device_ns / (sum(chunk.device_ns) or 1)  # 1 unless the window takes several lines
        text += f',"device_ns":[{columns[2]}],"window_ns":{round(chunk.window_ns * share)}'
        text += f',"device_stride":{chunk.device_stride}'
    return f'{text},"written":{time.perf_counter_ns()}}}\n'.encode()


def _lines_of_groups(chunk: Chunk, groups: List[Group], process: int) -> Iterator[bytes]:
    """Each step has its share of the time of its group; no number is converted to digits for each of them."""
    given_at, ask = 0, chunk.ask
    while chunk.written < len(groups):
        columns, begin, end, device_ns = ["", "", ""], chunk.steps_written, chunk.steps_written, 0
        while end - begin < STEPS_PER_LINE and chunk.written < len(groups):
            count, ended, wait_ns = groups[chunk.written]
            on_device = chunk.device_ns[chunk.written] if chunk.device_ns is not None else 0
            for i, ns in enumerate((ended - ask, min(wait_ns * count, ended - ask), on_device)):
                columns[i] += f"{ns // count + 1}," * (ns % count) + f"{ns // count}," * (count - ns % count)
            chunk.written, ask, end, device_ns = chunk.written + 1, ended, end + count, device_ns + on_device
        given: Dict[str, Tuple[List[int], List[Any]]] = {}
        while given_at < len(chunk.entries) and chunk.entries[given_at][0] < end:
            step, values = chunk.entries[given_at]
            given_at += 1
            for name, value in (("loss", values),) if type(values) is float else values.items():
                for column, number in zip(given.setdefault(name, ([], [])), (step - begin, value)):
                    column.append(number)
        yield _line_of(chunk, end, [column[:-1] for column in columns], {**given}, device_ns, process)
        chunk.steps_written, chunk.last_end = end, ask


@lru_cache(maxsize=16)
def _pattern(conversion: str, length: int) -> str:
    return ",".join([conversion] * length)


def _integers(numbers: List[int]) -> str:
    return _pattern("%s", len(numbers)) % tuple(numbers)


def _one_each(losses: List[float]) -> str:
    """Offsets and values if every step gave one loss.

    Many are written as bytes: converting a number to digits takes ten times as long as everything else.
    """
    if len(losses) < MANY_VALUES:
        return f"[{_first_integers(len(losses))}],{_encode(losses)}"
    packed = array("d", losses)
    if sys.byteorder == "big":
        packed.byteswap()
    return f'null,{{"float64":"{b2a_base64(packed, newline=False).decode()}"}}'


def given_values(column: List[Any], steps: int) -> Tuple[Sequence[int], Sequence[Any]]:
    """Offsets and values of one name in `given` of a `steps` event with that many steps."""
    offsets, values = column
    if isinstance(values, dict):
        unpacked = array("d", a2b_base64(values["float64"]))
        if sys.byteorder == "big":
            unpacked.byteswap()
        values = unpacked
    return range(steps) if offsets is None else offsets, values


@lru_cache(maxsize=16)
def _first_integers(count: int) -> str:
    return _integers(list(range(count)))


def left_over(chunk: Chunk) -> List[Dict[str, Any]]:
    """Values given in a last step that never ended, once all other steps are written."""
    rest = chunk.entries[chunk.written :]
    if chunk.groups is not None:
        rest = [given for step, given in chunk.entries if step >= chunk.steps_written]
    return [{"loss": entry} if type(entry) is float else entry for entry in rest if type(entry) is not int]


def probe_event(rank: Optional[int], version: str) -> Event:
    """The first event of a process."""
    return {
        "event": "probe",
        "version": STREAM_VERSION,
        "benchprobe": version,
        "t": time.perf_counter_ns(),
        "wall": time.time(),
        "rank": rank,
        "parent": os.getppid(),
        "python": ".".join(map(str, sys.version_info[:3])),
        "executable": sys.executable,
        "prefix": sys.prefix,
        "path": [str(folder) for folder in sys.path],
    }


def message_event(source: str, text: str, severity: str = "warning") -> Event:
    return {"event": "message", "t": time.perf_counter_ns(), "severity": severity, "source": source, "text": text}
