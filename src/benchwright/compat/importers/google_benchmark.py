"""`--benchmark_out=FILE --benchmark_out_format=json` of google-benchmark: its repetitions are the samples of one launch.

Statistics over the repetitions (mean, median, stddev, cv, BigO, RMS) are not samples and are left out, unless the file has
nothing else: then its median is imported as one number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.errors import InvalidInput
from benchwright.core.machine import UNKNOWN
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction, guess_direction
from benchwright.core.reported import is_number
from benchwright.core.run import Result, Run
from benchwright.core.status import Reason, Status
from benchwright.runs.foreign_json import ForeignFile, holds, load, shaped
from benchwright.runs.imported_run import (
    UNKNOWN_WORKLOAD,
    as_count,
    instant,
    make_machine,
    make_run,
    measurement,
    not_measured,
    one_launch,
    printed_objects,
)

TOOL = "google-benchmark"
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_AGGREGATE = re.compile(r"_(mean|median|stddev|cv|BigO|RMS)$")  # before version 1.5 only the name shows it
_PRINTED_AGGREGATE = re.compile(r"_(mean|median|stddev|cv|min|max|BigO|RMS)$")
_UNITS = {"bytes_per_second": "B/s", "items_per_second": "items/s"}
_BUILD_NOTE = "google-benchmark's own library is a debug build: its times are too long"


class _Row(msgspec.Struct, frozen=True):
    name: str
    run_name: str | None = None
    run_type: str | None = None
    aggregate_name: str | None = None
    aggregate_unit: str | None = None
    repetitions: int | None = None
    repetition_index: int | None = None
    family_index: int | None = None
    per_family_instance_index: int | None = None
    threads: int | None = None
    iterations: float | None = None
    real_time: float | None = None
    cpu_time: float | None = None
    time_unit: str = "ns"
    label: str | None = None
    error_occurred: bool = False
    error_message: str | None = None
    skipped: bool = False
    skip_message: str | None = None

    @property
    def aggregate(self) -> str | None:
        """Which statistic this is; None for a measured value."""
        if self.run_type is not None:
            return None if self.run_type == "iteration" else self.aggregate_name or "unnamed"
        match = _AGGREGATE.search(self.name)
        return match[1] if match else None

    @property
    def benchmark(self) -> str:
        if self.run_name is not None:
            return self.run_name
        return _AGGREGATE.sub("", self.name)


class _Context(msgspec.Struct, frozen=True):
    date: str | None = None
    host_name: str | None = None
    executable: str | None = None
    num_cpus: float | None = None
    library_version: str | None = None
    library_build_type: str | None = None


class _File(msgspec.Struct, frozen=True):
    context: _Context
    benchmarks: list[dict[str, Any]]


class _Sample(msgspec.Struct, frozen=True):
    """One row, with the counters of its benchmark."""

    row: _Row
    counters: dict[str, float]


class GoogleBenchmarkImporter:
    name = TOOL

    def recognises(self, path: Path) -> bool:
        return holds(path, context=dict, benchmarks=list)

    def read(self, path: Path) -> list[Run]:
        file = load(path)
        body = shaped(file.body, _File, where=file.path, tool=TOOL)
        groups: dict[tuple[str, int | None, int | None], list[_Sample]] = {}
        for index, raw in enumerate(body.benchmarks):
            sample = _sample(file, index, raw)
            row = sample.row
            # Two benchmarks may be registered under one name; from version 1.6 on these numbers distinguish them.
            which = (row.benchmark, row.family_index, row.per_family_instance_index)
            groups.setdefault(which, []).append(sample)
        made = [
            _result(name, samples, body.context, position)
            for position, ((name, *_), samples) in enumerate(groups.items())
        ]
        context = body.context
        return make_run(
            file,
            TOOL,
            [result for result in made if result is not None],
            machine=make_machine(
                hostname=context.host_name, cores=as_count(context.num_cpus), cores_total=as_count(context.num_cpus)
            ),
            started=instant(context.date, "%Y/%m/%d-%H:%M:%S", "%Y-%m-%d %H:%M:%S"),
            labels={"tool_version": context.library_version} if context.library_version else {},
            notes=(_BUILD_NOTE,) if context.library_build_type == "debug" else (),
        )

    def printed(self, document: Mapping[str, object]) -> Iterator[dict[str, object]]:
        for row in printed_objects(document.get("benchmarks")):
            if "real_time" not in row or _is_statistic(row) or row.get("error_occurred") or row.get("skipped"):
                continue
            name, unit = row.get("run_name") or row.get("name"), row.get("time_unit", "ns")
            yield {"type": name, "metric": "latency", "unit": unit, "value": row["real_time"]}
            if "cpu_time" in row:
                yield {"type": name, "metric": "cpu_time", "unit": unit, "value": row["cpu_time"]}
            for counter, value in row.items():
                if counter not in _Row.__struct_fields__ and is_number(value):
                    yield {"type": name, "metric": counter, "value": value}


def _is_statistic(row: Mapping[str, object]) -> bool:
    if "run_type" in row:
        return row["run_type"] != "iteration"
    return _PRINTED_AGGREGATE.search(str(row.get("name", ""))) is not None


def _sample(file: ForeignFile, index: int, raw: dict[str, Any]) -> _Sample:
    row = shaped(raw, _Row, where=file.path, tool=TOOL, at=f"$.benchmarks[{index}]")
    if row.time_unit not in _SECONDS:
        raise InvalidInput(
            f"'{row.time_unit}' at `$.benchmarks[{index}].time_unit` is not a unit of time",
            where=file.path,
            remedy=f"google-benchmark writes {', '.join(_SECONDS)}",
        )
    counters = {
        key: float(value) for key, value in raw.items() if key not in _Row.__struct_fields__ and is_number(value)
    }
    return _Sample(row=row, counters=counters)


def _result(name: str, samples: list[_Sample], context: _Context, position: int) -> Result | None:
    """None if the file has only a complexity estimate of that name."""
    bad = next((s.row for s in samples if s.row.error_occurred or s.row.skipped), None)
    measured = [s for s in samples if s.row.aggregate is None]
    kept = measured or _nearest_to_median(samples)
    label = samples[0].row.label
    benchmark = Benchmark(
        name=name,
        workload=Command(argv=(context.executable,), cwd=UNKNOWN) if context.executable else UNKNOWN_WORKLOAD,
        source=TOOL,
        labels={"label": label} if label else {},
        notes=()
        if measured
        else ("the file has no repetitions: google-benchmark's own median was imported as one number",),
    )
    if bad is not None:
        status = Status.FAILED if bad.error_occurred else Status.SKIPPED
        result = not_measured(benchmark, status, bad.error_message or bad.skip_message or "no message")
        return msgspec.structs.replace(result, reason=Reason.CRASHED if bad.error_occurred else None)
    if not any(s.row.real_time is not None for s in kept):
        return None
    facts = {"iterations": [s.row.iterations for s in kept], "threads": kept[0].row.threads}
    return one_launch(benchmark, _measurements(kept), position=position, facts=facts)


def _nearest_to_median(samples: list[_Sample]) -> list[_Sample]:
    by_name = {s.row.aggregate: s for s in samples}
    found = by_name.get("median") or by_name.get("mean")
    return [found] if found else []


def _measurements(kept: list[_Sample]) -> list[Measurement]:
    lower = Direction.LOWER
    times = [s.row.real_time * _SECONDS[s.row.time_unit] for s in kept if s.row.real_time is not None]
    cpu = [s.row.cpu_time * _SECONDS[s.row.time_unit] for s in kept if s.row.cpu_time is not None]
    found = [measurement("time", "s", lower, times)]
    if cpu:
        found.append(measurement("cpu_time", "s", lower, cpu))
    for name in dict.fromkeys(key for s in kept for key in s.counters):
        unit = _UNITS.get(name)
        values = [s.counters[name] for s in kept if name in s.counters]
        # A user's counter may have the name of one of our metrics.
        labels = {"counter": name} if name in ("time", "cpu_time") else {}
        found.append(measurement(name, unit, guess_direction(name, unit), values, labels=labels))
    return found
