"""Making a Run from another tool's results. What the tool does not record is "unknown" or 0, never guessed."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

import msgspec

from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.machine import UNKNOWN, Machine
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.note import Note
from benchwright.core.run import Launch, Result, Run
from benchwright.core.status import Status
from benchwright.runs.assembly import status_of
from benchwright.runs.foreign_json import ForeignFile

UNKNOWN_WORKLOAD = Command(argv=(UNKNOWN,), cwd=UNKNOWN)
SOURCE = "import"


def make_run(
    file: ForeignFile,
    tool: str,
    results: Sequence[Result],
    *,
    machine: Machine,
    started: str | None,
    labels: Mapping[str, str] = {},
    notes: Iterable[str] = (),
    packages: Mapping[str, Mapping[str, str]] = {},
) -> list[Run]:
    """The run in a file; none if it has no results. `started`: None if the file does not say."""
    if not results:
        return []
    remarks = list(notes)
    if started is None:
        remarks.append(f"{tool} does not record when it measured: the time is that of the file")
    if not machine.known:
        remarks.append(f"{tool} does not record which machine it measured on")
    return [
        Run(
            id=f"import.{tool}.{file.digest[:16]}",
            name=PurePath(file.path).stem or tool,
            started=started or moment(file.changed) or UNKNOWN,
            folder=os.path.abspath(file.path),
            status=status_of([result.status for result in results]),
            machine=machine,
            results=tuple(_with_unique_names(results)),
            labels=dict(labels) | {"imported_from": tool},
            notes=tuple(Note(text=text) for text in dict.fromkeys(remarks)),
            packages={name: dict(versions) for name, versions in packages.items()},
        )
    ]


def make_machine(**known: object) -> Machine:
    """A machine with only these fields known; None or empty means unknown."""
    fields: dict[str, Any] = dict.fromkeys(
        ("hostname", "system", "kernel", "architecture", "cpu", "python"), UNKNOWN
    ) | dict.fromkeys(("cores", "cores_total", "memory_bytes"), 0)
    return Machine(**fields | {name: value for name, value in known.items() if value})


def one_launch(
    benchmark: Benchmark, measurements: Iterable[Measurement], *, position: int, facts: Mapping[str, object] = {}
) -> Result:
    """A benchmark measured by one process, with any number of samples."""
    launch = Launch(
        job=benchmark.name, status=Status.OK, position=position, measurements=tuple(measurements), facts=dict(facts)
    )
    return Result(benchmark=benchmark, status=Status.OK, launches=(launch,))


def not_measured(benchmark: Benchmark, status: Status, detail: str) -> Result:
    """A benchmark that failed or was skipped; other tools give no machine-readable reason."""
    return Result(benchmark=benchmark, status=status, detail=detail)


def measurement(
    metric: str,
    unit: str | None,
    direction: Direction,
    samples: Iterable[float],
    *,
    source: str = SOURCE,
    aggregate: str = "median",
    labels: Mapping[str, str] = {},
) -> Measurement:
    return Measurement(
        metric=metric,
        unit=unit,
        direction=direction,
        samples=tuple(samples),
        source=source,
        aggregate=aggregate,
        labels=dict(labels),
    )


def moment(seconds: float) -> str | None:
    """Seconds since 1970 as ISO 8601 in UTC; None if out of range."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return None


def instant(text: str | None, *formats: str) -> str | None:
    """ISO 8601, or one of `formats`, as ISO 8601 with zone (UTC by default); None if it is not a date."""
    for read in (datetime.fromisoformat, *((lambda t, f=f: datetime.strptime(t, f)) for f in formats)):
        try:
            found = read(text or "")
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).isoformat(timespec="seconds")
        except (ValueError, OverflowError):
            continue
    return None


def as_text(value: Any) -> str:
    """A parameter's value as text."""
    return value if isinstance(value, str) else json.dumps(value)


def at(values: Sequence[Any] | None, index: int) -> Any:
    """None where the list is too short, or missing."""
    return values[index] if values is not None and index < len(values) else None


def as_count(value: float | None) -> int:
    """As an integer; 0, which means unknown, if it is not a positive number."""
    return int(value) if value is not None and math.isfinite(value) and value > 0 else 0


def _with_unique_names(results: Sequence[Result]) -> list[Result]:
    """Makes names unique: a repeated name gets its parameters added and, if that is not enough, a number."""
    taken: set[str] = set()
    unique = []
    for result in results:
        benchmark = result.benchmark
        name = wanted = benchmark.name or "unnamed"
        if name in taken and benchmark.parameters:
            wanted = f"{name} ({', '.join(f'{key}={value}' for key, value in benchmark.parameters.items())})"
            name = wanted
        number = 1
        while name in taken:
            number += 1
            name = f"{wanted} #{number}"
        taken.add(name)
        unique.append(_renamed(result, name))
    return unique


def _renamed(result: Result, name: str) -> Result:
    """The same result renamed, with jobs named `<name>.R<n>`."""
    replace = msgspec.structs.replace
    launches = tuple(replace(launch, job=f"{name}.R{n}") for n, launch in enumerate(result.launches))
    return replace(result, benchmark=replace(result.benchmark, name=name), launches=launches)


def printed_objects(rows: object) -> list[dict[str, object]]:
    """The objects of a list in a printed document; none if it is no list."""
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def printed_times(name: object, samples: object, statistics: Mapping[str, object]) -> Iterator[dict[str, object]]:
    """A printed record of the samples, in seconds; of the tool's own median if it did not keep them."""
    kept = samples if isinstance(samples, list) and samples else statistics.get("median", statistics.get("mean"))
    if kept is not None:
        yield {"type": name, "metric": "latency", "unit": "s", "values": kept if isinstance(kept, list) else [kept]}
