"""asv's `results/<machine>/<commit>-<environment>.json`, versions 1 and 2: every combination of parameters is a benchmark.

`machine.json` beside the file and `benchmarks.json` one folder up, if present, give the machine, units and parameter names.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.machine import Machine
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction, guess_direction
from benchwright.core.quantities import parse_size
from benchwright.core.run import Result, Run
from benchwright.core.status import Status
from benchwright.core.stop_rule import Warmup
from benchwright.runs.foreign_json import ForeignFile, body_of, load, shaped
from benchwright.runs.imported_run import (
    UNKNOWN_WORKLOAD,
    as_text,
    at,
    make_machine,
    make_run,
    measurement,
    moment,
    not_measured,
    one_launch,
)

TOOL = "asv"
_VERSIONS = (1, 2)
# The names by which asv itself knows what a function or class measures.
_KIND = re.compile(r"(?:^|\.)(?:(timeraw|time|peakmem|mem|track)_|(Timeraw|Time|PeakMem|Mem|Track)[A-Z_])[^.]*$")
_METRICS = {"time": ("time", "s"), "mem": ("memory", "B"), "peakmem": ("peak_memory", "B")}
_TYPES = {"time": "time", "memory": "mem", "peakmemory": "peakmem", "track": "track"}  # as in benchmarks.json
_NO_SAMPLES = "some benchmarks have no samples, only asv's own number; asv run --record-samples keeps the samples"
_POOLED = "asv does not record which process took which sample: the samples of all processes count as one launch"
_NO_REASON = "asv does not record why"
_COMMIT_DATE = "asv did not record when it measured: the time is that of the commit"


class _File(msgspec.Struct, frozen=True):
    commit_hash: str
    results: dict[str, Any]
    version: int = 1
    env_name: str | None = None
    date: float | None = None  # of the commit, in milliseconds
    params: dict[str, Any] = {}
    python: str | None = None
    requirements: dict[str, Any] = {}
    result_columns: list[str] = []
    started_at: dict[str, Any] = {}  # version 1


class _Entry(msgspec.Struct, frozen=True):
    """One benchmark, in either version. `result` is None if all of it failed."""

    result: list[float | None] | float | None = None
    params: list[list[Any]] | None = None
    samples: list[list[float] | None] | None = None
    stats: list[Any] | None = None
    started_at: float | None = None

    @property
    def values(self) -> list[float | None]:
        return self.result if isinstance(self.result, list) else [self.result]


class _About(msgspec.Struct, frozen=True):
    """A benchmark in benchmarks.json."""

    type: str | None = None
    unit: str | None = None
    param_names: list[str] = []
    warmup_time: float | None = None


class AsvImporter:
    name = TOOL

    def recognises(self, path: Path) -> bool:
        body = body_of(path)
        return isinstance(body, dict) and "commit_hash" in body and isinstance(body.get("results"), dict)

    def read(self, path: Path) -> list[Run]:
        file = load(path)
        body = shaped(file.body, _File, where=file.path, tool=TOOL)
        if body.version not in _VERSIONS:
            raise InvalidInput(
                f"unknown version {body.version} of asv's result files",
                where=file.path,
                remedy="versions 1 and 2 can be imported",
            )
        about = _benchmarks_file(path)
        entries = {name: _entry(file, body, name, raw) for name, raw in body.results.items()}
        results: list[Result] = []
        for name, entry in entries.items():
            results += _expanded(file, name, entry, about.get(name, _About()), len(results))
        begun = [entry.started_at for entry in entries.values() if entry.started_at is not None]
        started = moment(min(begun) / 1000) if begun else None
        return make_run(
            file,
            TOOL,
            results,
            machine=_machine(body, path),
            started=started or (moment(body.date / 1000) if body.date is not None else None),
            labels={"revision": body.commit_hash} | ({"environment": body.env_name} if body.env_name else {}),
            notes=[
                *_sample_notes(entries, about),
                *([_COMMIT_DATE] if not started and body.date is not None else []),
            ],
            packages=_packages(body),
        )


def _entry(file: ForeignFile, body: _File, name: str, raw: object) -> _Entry:
    if body.version == 1:
        fields = raw if isinstance(raw, dict) else {"result": raw}
        fields = fields | {"started_at": body.started_at.get(name)}
    elif isinstance(raw, list):
        fields = dict(zip(body.result_columns, raw, strict=False))  # trailing None values are left out
        fields["stats"] = _stats_of_columns(fields)
    else:
        raise InvalidInput(f"not a file of asv: '{name}' has no list of columns", where=file.path)
    return shaped(fields, _Entry, where=file.path, tool=TOOL, at=f"$.results[{name!r}]")


def _stats_of_columns(fields: Mapping[str, object]) -> list[dict[str, object]] | None:
    """Version 2 has a column for each statistic; version 1 had an object for each combination."""
    columns = {
        key.removeprefix("stats_"): value
        for key, value in fields.items()
        if key.startswith("stats_") and isinstance(value, list)
    }
    rows = itertools.zip_longest(*columns.values())
    return [dict(zip(columns, row, strict=True)) for row in rows] or None


def _expanded(file: ForeignFile, name: str, entry: _Entry, about: _About, position: int) -> Iterator[Result]:
    if entry.result is None:
        yield not_measured(_benchmark(name, {}, about), Status.FAILED, _NO_REASON)
        return
    params = entry.params or []
    values = entry.values
    if len(values) != math.prod(map(len, params)):
        raise InvalidInput(
            f"'{name}' has {len(values)} results for {math.prod(map(len, params))} combinations of parameters",
            where=file.path,
            remedy="export the file again with asv",
        )
    names = [*about.param_names, *(f"param{n}" for n in range(len(about.param_names) + 1, len(params) + 1))]
    for index, (value, chosen) in enumerate(zip(values, itertools.product(*params), strict=True)):
        parameters = dict(zip(names, map(as_text, chosen), strict=False))
        yield _result(name, entry, index, value, parameters, about, position + index)


def _result(
    name: str,
    entry: _Entry,
    index: int,
    value: float | None,
    parameters: dict[str, str],
    about: _About,
    position: int,
) -> Result:
    benchmark = _benchmark(name, parameters, about)
    if value is None:
        return not_measured(benchmark, Status.FAILED, _NO_REASON)
    if math.isnan(value):
        return not_measured(benchmark, Status.SKIPPED, "n/a: its setup skipped it, or it gave NaN")
    samples = at(entry.samples, index) or [value]
    stats = at(entry.stats, index)
    return one_launch(
        benchmark, [_measured(name, samples, about)], position=position, facts={"stats": stats} if stats else {}
    )


def _benchmark(name: str, parameters: dict[str, str], about: _About) -> Benchmark:
    shown = f"{name}({', '.join(parameters.values())})" if parameters else name
    given = about.warmup_time is not None and about.warmup_time >= 0  # -1: chosen by asv
    warmup = Warmup(seconds=about.warmup_time) if given else Warmup()
    return Benchmark(name=shown, workload=UNKNOWN_WORKLOAD, source=f"asv {name}", warmup=warmup, parameters=parameters)


def _measured(name: str, samples: list[float], about: _About) -> Measurement:
    kind = _kind(name, about)
    if kind in _METRICS:
        metric, unit = _METRICS[kind]
        return measurement(metric, unit, Direction.LOWER, samples)
    named = None if about.unit == "unit" else about.unit  # asv's placeholder for no unit
    function = name.rpartition(".")[2]
    return measurement("value", named, guess_direction(function, named), samples)


def _kind(name: str, about: _About | None) -> str:
    match = _KIND.search(name)
    prefix = (match[1] or match[2]).lower() if match else "track"
    kind = _TYPES.get((about and about.type) or "", prefix)
    return "time" if kind == "timeraw" else kind


def _benchmarks_file(path: Path) -> dict[str, _About]:
    body = body_of(path.parent.parent / "benchmarks.json")
    found = {}
    for name, raw in body.items() if isinstance(body, dict) else ():
        try:
            found[name] = msgspec.convert(raw, _About)
        except (msgspec.ValidationError, OverflowError):
            continue  # its version, or something we do not need
    return found


def _machine(body: _File, path: Path) -> Machine:
    beside = body_of(path.parent / "machine.json")
    said = (
        beside if isinstance(beside, dict) and beside.get("machine") == body.params.get("machine") else {}
    ) | body.params
    words = {key: value for key, value in said.items() if isinstance(value, str)}
    system, _, kernel = words.get("os", "").partition(" ")
    cores = words.get("num_cpu", "")
    count = int(cores) if cores.isascii() and cores.isdigit() and len(cores) < 7 else 0
    return make_machine(
        hostname=words.get("machine"),
        system=system,
        kernel=kernel,
        architecture=words.get("arch"),
        cpu=words.get("cpu"),
        cores=count,
        cores_total=count,
        memory_bytes=_memory_bytes(words.get("ram", "")),
        python=body.python,
    )


def _memory_bytes(text: str) -> int:
    """`8GB`, or a bare number: bytes, KiB before asv 0.6; 0 if it cannot be read."""
    try:
        size = parse_size(text)
    except (InvalidInput, OverflowError):
        return 0
    # No machine that runs asv has so little memory that the two could be confused.
    size = size * 1024 if text.strip().isdigit() and size < 1 << 29 else size
    return size if size < 1 << 62 else 0


def _packages(body: _File) -> dict[str, dict[str, str]]:
    versions = {name: version for name, version in body.requirements.items() if isinstance(version, str) and version}
    return {body.env_name or "asv": versions} if versions else {}


def _sample_notes(entries: Mapping[str, _Entry], about: Mapping[str, _About]) -> list[str]:
    """Only for times: memory and tracked values are measured once."""
    timed = [
        entry for name, entry in entries.items() if entry.result is not None and _kind(name, about.get(name)) == "time"
    ]
    sampled = [entry for entry in timed if any(entry.samples or ())]
    return ([_POOLED] if sampled else []) + ([_NO_SAMPLES] if len(sampled) < len(timed) else [])
