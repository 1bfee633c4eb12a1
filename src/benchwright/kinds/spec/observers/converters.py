"""Which reader a test's output needs: its converter, else its observer, else the one of its framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.metric import MetricSpec
from benchwright.kinds.spec.observers.identified import CAFFE2, PYTORCH, identified_records, json_lines
from benchwright.kinds.spec.observers.records import Observed, PrintedLine

REGEX = "regex"
_IDENTIFIED = "json_with_identifier_converter"
_ANY_OBSERVER = "Observer"  # in both names
_OBSERVERS = {"caffe2": CAFFE2, "pytorch": PYTORCH, "generic": PYTORCH}  # by framework


class OutputReader(NamedTuple):
    """`wanted`: what every line to read contains; empty: all lines. `what`: what is missing if nothing was read."""

    wanted: str
    read: Callable[[Sequence[PrintedLine]], Observed]
    what: str


_DOCUMENTS = ("google-benchmark", "pytest-benchmark", "hyperfine")  # one JSON document
_LINES = ("json_converter", "tflite")
CONVERTERS = (_IDENTIFIED, *_LINES, *_DOCUMENTS, REGEX)


def reader_of(
    converter: str | None, args: Mapping[str, Any], observer: str | None, framework: str | None
) -> OutputReader | None:
    """None: only patterns are read. Without converter, observer and framework, both observers' records are."""
    if converter == REGEX:
        return None
    if converter in (*_LINES, *_DOCUMENTS):
        return _named(converter)
    if converter == _IDENTIFIED or observer is not None:
        identifier = str(args.get("identifier") or observer or "").strip()
        return _identified([identifier] if identifier else [CAFFE2, PYTORCH])
    if framework == "tflite":
        return _named("tflite")
    return _either(_OBSERVERS.get(framework or ""))


def _named(converter: str) -> OutputReader:
    """Readers that few tests need are imported by those."""
    if converter == "json_converter":
        return OutputReader("{", json_lines, "a line of JSON with type, metric and value")
    if converter == "tflite":
        from benchwright.kinds.spec.observers.tflite import STATISTICS_LINE, tflite_records

        return OutputReader(STATISTICS_LINE, tflite_records, "tflite's line 'count=… avg=…'")
    from benchwright.kinds.spec.observers import documents

    read = {
        "google-benchmark": documents.google_benchmark,
        "pytest-benchmark": documents.pytest_benchmark,
        "hyperfine": documents.hyperfine,
    }
    return OutputReader("", read[converter], f"{converter}'s JSON")


def check_converter(name: str, args: Mapping[str, Any], *, where: str | None = None, line: int | None = None) -> None:
    """InvalidInput for an unknown converter, or one with wrong arguments."""
    if name not in CONVERTERS:
        remedy = did_you_mean(name, CONVERTERS) or f"use one of {', '.join(CONVERTERS)}"
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
    from benchwright.kinds.metric_option import parse_metric_option

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
