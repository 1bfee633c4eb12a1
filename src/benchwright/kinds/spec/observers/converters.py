"""Which reader a test's output needs: its converter, else its observer, else the one of its framework."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from benchwright.agent.extractors.numbers import read_number
from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.metric import MetricSpec
from benchwright.kinds.metric_option import parse_metric_option
from benchwright.kinds.spec.observers.identified import CAFFE2, LATENCY, PYTORCH, identified_records, json_lines
from benchwright.kinds.spec.observers.records import NET, Observed, ObserverRecord, PrintedLine
from benchwright.runs.importers import output_reader_named, output_readers

# Result documents of other tools in a program's output, read by their importers.
#
# Print the document with the tool's own option, or a last command such as `cat {TGTDIR}/result.json`. One benchmark in it
# is the test's own; several are told apart as its parts are. Statistics that a tool computed from its samples are left out.


_MOST_TRIES = 64
_DECODER = json.JSONDecoder()

Document = dict[str, object]
Found = dict[str, object]  # type, metric, unit, values


def _read(lines: Sequence[PrintedLine], tool: str, rows: Callable[[Document], Iterator[Found]]) -> Observed:
    observed = Observed()
    found: list[Found] = []
    line = lines[0].number if lines else 1
    for number, document in _documents(lines):
        more = list(rows(document))
        line = number if more and not found else line
        found += more
    if not found and lines:
        observed.reject(line, lines[0].text, f"no result of {tool} was printed; have it print its JSON")
    alone = len({str(each["type"]) for each in found}) == 1
    for each in found:
        observed.add_json(each | {"type": NET} if alone else each, line)
    return observed


def _documents(lines: Sequence[PrintedLine]) -> Iterator[tuple[int, Document]]:
    """Each JSON object that begins at the start of a line, and that line's number."""
    text = "\n".join(line.text for line in lines)
    begins, position = [], 0
    for line in lines:
        if line.text.lstrip().startswith("{"):
            begins.append((line.number, position + len(line.text) - len(line.text.lstrip())))
        position += len(line.text) + 1
    end = 0
    for number, begin in begins[:_MOST_TRIES]:
        if begin < end:
            continue
        try:
            value, end = _DECODER.raw_decode(text, begin)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield number, value


# tflite's benchmark_model: a line of statistics for each batch of runs, in microseconds, warm-up first.
#
# `count=50 first=108 curr=91 min=90 max=120 avg=98.4 std=7`, or `count=1 curr=101`; with or without `INFO:` before it. It does
# not print the single runs, so its mean stands for them, beside its first, smallest, largest and standard deviation. Its own
# statistics are kept as its summary, under the names of specifications.


STATISTICS_LINE = "count="
_LINE = re.compile(r"(?:^|[\s:])count=(\S+)((?:\s+\w+=\S+)*)")
_PART = re.compile(r"(\w+)=(\S+)")
_SUMMARY = {"avg": "mean", "min": "p0", "max": "p100", "std": "stdev"}
_SHOWN = {"first": "first", "min": "min", "max": "max", "std": "std"}  # key → the metric behind `latency.`


def tflite_records(lines: Sequence[PrintedLine]) -> Observed:
    """The last line holds the measured runs, those before it are warm-up; if it cannot be read, nothing was measured."""
    observed = Observed()
    found: list[tuple[PrintedLine, dict[str, float]]] = []
    for line in lines:
        match = _LINE.search(line.text)
        if match is None:
            continue
        parts = {"count": match[1], **dict(_PART.findall(match[2]))}
        numbers = {key: n for key, text in parts.items() if (n := read_number(text)) is not None}
        if line.cut or len(numbers) < len(parts) or not {"avg", "curr"} & numbers.keys():
            observed.reject(line.number, match[0].strip(), "is cut off" if line.cut else "holds no number")
        elif math.isfinite(numbers["count"]) and numbers["count"] >= 1:
            found.append((line, numbers))
    for line, numbers in found:
        last = line is found[-1][0] and not any(each.line > line.number for each in observed.unread)
        _add(observed, LATENCY, numbers.get("avg", numbers.get("curr", 0.0)), line, numbers, warmup=not last)
        for key, name in _SHOWN.items() if last else ():
            if key in numbers and numbers["count"] > 1:
                _add(observed, f"{LATENCY}.{name}", numbers[key], line, numbers)
    return observed


def _add(
    observed: Observed,
    metric: str,
    value: float,
    line: PrintedLine,
    numbers: dict[str, float],
    *,
    warmup: bool = False,
) -> None:
    about: dict[str, object] = {"num_runs": int(numbers["count"])}
    if metric == LATENCY and "avg" in numbers:
        about["summary"] = {name: numbers[key] for key, name in _SUMMARY.items() if key in numbers}
    observed.records.append(
        ObserverRecord(
            type=NET, metric=metric, unit="us", values=(value,), line=line.number, about=about, warmup=warmup
        )
    )


REGEX = "regex"
_IDENTIFIED = "json_with_identifier_converter"
_ANY_OBSERVER = "Observer"  # in both names
_OBSERVERS = {"caffe2": CAFFE2, "pytorch": PYTORCH, "generic": PYTORCH}  # by framework


class OutputReader(NamedTuple):
    """`wanted`: what every line to read contains; empty: all lines. `what`: what is missing if nothing was read."""

    wanted: str
    read: Callable[[Sequence[PrintedLine]], Observed]
    what: str


_LINES = ("json_converter", "tflite")
_OWN = (_IDENTIFIED, *_LINES, REGEX)


def reader_of(
    converter: str | None, args: Mapping[str, Any], observer: str | None, framework: str | None
) -> OutputReader | None:
    """None: only patterns are read. Without converter, observer and framework, both observers' records are."""
    if converter == REGEX:
        return None
    if converter is not None and converter not in _OWN:
        return _of_document(converter)
    if converter in _LINES or (converter is None and observer is None and framework == "tflite"):
        return _of_lines(converter or "tflite")
    if converter == _IDENTIFIED or observer is not None:
        identifier = str(args.get("identifier") or observer or "").strip()
        return _identified([identifier] if identifier else [CAFFE2, PYTORCH])
    return _either(_OBSERVERS.get(framework or ""))


def _of_lines(converter: str) -> OutputReader:
    if converter == "json_converter":
        return OutputReader("{", json_lines, "a line of JSON with type, metric and value")
    return OutputReader(STATISTICS_LINE, tflite_records, "tflite's line 'count=… avg=…'")


def _of_document(converter: str) -> OutputReader | None:
    importer = output_reader_named(converter)
    if importer is None:
        return None
    return OutputReader("", lambda lines: _read(lines, converter, importer.printed), f"{converter}'s JSON")


def check_converter(name: str, args: Mapping[str, Any], *, where: str | None = None, line: int | None = None) -> None:
    """InvalidInput for an unknown converter, or one with wrong arguments."""
    if name not in _OWN and output_reader_named(name) is None:
        known = [*_OWN, *output_readers()]
        remedy = did_you_mean(name, known) or f"use one of {', '.join(known)}"
        raise InvalidInput(f"unknown converter '{name}'", where=where, line=line, remedy=remedy)
    if name == _IDENTIFIED and not isinstance(args.get("identifier"), str | None):
        raise InvalidInput("the converter's identifier is not text", where=where, line=line)
    if name == REGEX and not (args and all(isinstance(pattern, str) for pattern in args.values())):
        remedy = 'write {"name": "regex", "args": {"latency": "took ([0-9.]+) ms"}}'
        raise InvalidInput("the converter 'regex' has no patterns", where=where, line=line, remedy=remedy)


def patterns_of(converter: str | None, args: Mapping[str, Any]) -> tuple[MetricSpec, ...]:
    """The metrics of a converter of regular expressions, written as those of `--metric` are: `"speed[items/s]": "([0-9]+)"`."""
    if converter != REGEX:
        return ()

    return tuple(parse_metric_option(f"{name}=regex:{pattern}") for name, pattern in args.items())


def _identified(identifiers: Sequence[str]) -> OutputReader:
    wanted = identifiers[0] if len(identifiers) == 1 else _ANY_OBSERVER
    what = " or ".join(f"'{name} {{…}}'" for name in identifiers)
    return OutputReader(wanted, lambda lines: identified_records(lines, identifiers), f"a line {what}")


def _either(usual: str | None) -> OutputReader:
    """Records of both observers; if the framework has a usual one, and it printed any, only its."""
    both = _identified([CAFFE2, PYTORCH])

    def read(lines: Sequence[PrintedLine]) -> Observed:
        found = identified_records(lines, [usual]) if usual is not None else Observed()
        return found if found.records else both.read(lines)

    return both._replace(read=read)
