"""Result documents of other tools in a program's output: google-benchmark, pytest-benchmark, hyperfine.

Print the document with the tool's own option, or a last command such as `cat {TGTDIR}/result.json`. One benchmark in it
is the test's own; several are told apart as its parts are. Statistics that a tool computed from its samples are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence

from benchwright.kinds.spec.observers.identified import LATENCY
from benchwright.kinds.spec.observers.records import NET, Observed, PrintedLine

_MOST_TRIES = 64
_DECODER = json.JSONDecoder()
_STATISTIC = re.compile(r"_(mean|median|stddev|cv|min|max|BigO|RMS)$")  # before version 1.5 only the name shows it
_OF_A_ROW = frozenset(
    "name run_name run_type repetitions repetition_index family_index per_family_instance_index threads iterations "
    "real_time cpu_time time_unit label".split()
)

Document = dict[str, object]
Found = dict[str, object]  # type, metric, unit, values


def google_benchmark(lines: Sequence[PrintedLine]) -> Observed:
    return _read(lines, "google-benchmark", _google_rows)


def pytest_benchmark(lines: Sequence[PrintedLine]) -> Observed:
    return _read(lines, "pytest-benchmark", _pytest_rows)


def hyperfine(lines: Sequence[PrintedLine]) -> Observed:
    return _read(lines, "hyperfine", _hyperfine_rows)


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


def _google_rows(document: Document) -> Iterator[Found]:
    for row in _objects(document.get("benchmarks")):
        if "real_time" not in row or _is_statistic(row) or row.get("error_occurred") or row.get("skipped"):
            continue
        name, unit = row.get("run_name") or row.get("name"), row.get("time_unit", "ns")
        yield {"type": name, "metric": LATENCY, "unit": unit, "value": row["real_time"]}
        if "cpu_time" in row:
            yield {"type": name, "metric": "cpu_time", "unit": unit, "value": row["cpu_time"]}
        for counter, value in row.items():
            if counter not in _OF_A_ROW and isinstance(value, int | float) and not isinstance(value, bool):
                yield {"type": name, "metric": counter, "value": value}


def _is_statistic(row: Document) -> bool:
    if "run_type" in row:
        return row["run_type"] != "iteration"
    return _STATISTIC.search(str(row.get("name", ""))) is not None


def _pytest_rows(document: Document) -> Iterator[Found]:
    for row in _objects(document.get("benchmarks")):
        stats = row.get("stats")
        if isinstance(stats, dict):
            yield from _one(row.get("fullname") or row.get("name"), stats.get("data"), stats)


def _hyperfine_rows(document: Document) -> Iterator[Found]:
    for row in _objects(document.get("results")):
        if "command" in row:
            yield from _one(row["command"], row.get("times"), row)


def _one(name: object, samples: object, statistics: Document) -> Iterator[Found]:
    """The samples; the tool's own median where it did not keep them."""
    kept = samples if isinstance(samples, list) and samples else statistics.get("median", statistics.get("mean"))
    if kept is not None:
        yield {"type": name, "metric": LATENCY, "unit": "s", "values": kept if isinstance(kept, list) else [kept]}


def _objects(rows: object) -> list[Document]:
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
