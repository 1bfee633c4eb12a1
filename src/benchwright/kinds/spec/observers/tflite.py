"""tflite's benchmark_model: a line of statistics for each batch of runs, in microseconds, warm-up first.

`count=50 first=108 curr=91 min=90 max=120 avg=98.4 std=7`, or `count=1 curr=101`; with or without `INFO:` before it. It does
not print the single runs, so its mean stands for them, beside its first, smallest, largest and standard deviation. Its own
statistics are kept as its summary, under FAI-PEP's names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from benchwright.agent.extractors.numbers import read_number
from benchwright.kinds.spec.observers.identified import LATENCY
from benchwright.kinds.spec.observers.records import NET, Observed, ObserverRecord, PrintedLine

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
