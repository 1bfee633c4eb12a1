"""`pytest --benchmark-json FILE` and the files in `.benchmarks`: the rounds of one process are the samples of one launch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.machine import Machine
from benchwright.core.metric import Direction
from benchwright.core.run import Result, Run
from benchwright.core.status import Status
from benchwright.core.stop_rule import Warmup
from benchwright.runs.foreign_json import holds, load, shaped
from benchwright.runs.imported_run import (
    UNKNOWN_WORKLOAD,
    as_count,
    as_text,
    instant,
    make_machine,
    make_run,
    measurement,
    not_measured,
    one_launch,
    printed_objects,
    printed_times,
)

TOOL = "pytest-benchmark"
_NO_SAMPLES = "some benchmarks have no rounds, only their median; pytest --benchmark-save-data keeps the rounds"


class _Stats(msgspec.Struct, frozen=True):
    median: float | None = None
    mean: float | None = None
    data: list[float] | None = None
    iterations: float | None = None
    rounds: float | None = None


class _Options(msgspec.Struct, frozen=True):
    timer: str | None = None
    disable_gc: bool | None = None
    warmup: bool | int | None = None


class _Benchmark(msgspec.Struct, frozen=True):
    name: str
    fullname: str | None = None
    group: str | None = None
    params: dict[str, Any] | None = None
    extra_info: dict[str, Any] | None = None
    options: _Options | None = None
    stats: _Stats | None = None


class _Cpu(msgspec.Struct, frozen=True):
    brand_raw: str | None = None
    brand: str | None = None  # its name before py-cpuinfo 6
    count: float | None = None


class _MachineInfo(msgspec.Struct, frozen=True):
    node: str | None = None
    machine: str | None = None
    system: str | None = None
    release: str | None = None
    python_version: str | None = None
    cpu: _Cpu | str | None = None


class _CommitInfo(msgspec.Struct, frozen=True):
    id: str | None = None
    branch: str | None = None
    dirty: bool | None = None


class _File(msgspec.Struct, frozen=True):
    benchmarks: list[_Benchmark]
    machine_info: _MachineInfo
    commit_info: _CommitInfo | None = None
    datetime: str | None = None
    version: str | None = None


class PytestBenchmarkImporter:
    name = TOOL

    def recognises(self, path: Path) -> bool:
        return holds(path, benchmarks=list, machine_info=dict)

    def read(self, path: Path) -> list[Run]:
        file = load(path)
        body = shaped(file.body, _File, where=file.path, tool=TOOL)
        results = [_result(found, position) for position, found in enumerate(body.benchmarks)]
        bare = any(found.stats is not None and not found.stats.data for found in body.benchmarks)
        return make_run(
            file,
            TOOL,
            results,
            machine=_machine(body.machine_info),
            started=instant(body.datetime),
            labels=_labels(body),
            notes=(_NO_SAMPLES,) if bare else (),
        )

    def printed(self, document: Mapping[str, object]) -> Iterator[dict[str, object]]:
        for row in printed_objects(document.get("benchmarks")):
            stats = row.get("stats")
            if isinstance(stats, dict):
                yield from printed_times(row.get("fullname") or row.get("name"), stats.get("data"), stats)


def _result(found: _Benchmark, position: int) -> Result:
    options = found.options or _Options()
    benchmark = Benchmark(
        name=found.fullname or found.name,
        workload=UNKNOWN_WORKLOAD,
        source=f"{TOOL} {found.name}",
        warmup=Warmup(steps=int(options.warmup)) if options.warmup is not None else Warmup(),
        labels={"group": found.group} if found.group else {},
        parameters={key: as_text(value) for key, value in (found.params or {}).items()},
    )
    stats = found.stats or _Stats()
    one = stats.mean if stats.median is None else stats.median
    samples = stats.data or ([] if one is None else [one])
    if not samples:
        return not_measured(benchmark, Status.FAILED, "pytest-benchmark recorded no time for it")
    # Each round is already divided by its iterations.
    facts = {
        "iterations": stats.iterations,
        "rounds": stats.rounds,
        "timer": options.timer,
        "disable_gc": options.disable_gc,
        "extra_info": found.extra_info,
    }
    time = measurement("time", "s", Direction.LOWER, samples)
    return one_launch(benchmark, [time], position=position, facts=_said(facts))


def _machine(info: _MachineInfo) -> Machine:
    cpu = info.cpu if isinstance(info.cpu, _Cpu) else _Cpu(brand_raw=info.cpu)
    cores = as_count(cpu.count)
    return make_machine(
        hostname=info.node,
        system=info.system,
        kernel=info.release,
        architecture=info.machine,
        cpu=cpu.brand_raw or cpu.brand,
        cores=cores,
        cores_total=cores,
        python=info.python_version,
    )


def _labels(body: _File) -> dict[str, str]:
    commit = body.commit_info
    labels = {"tool_version": body.version} if body.version else {}
    if commit is None or not commit.id or commit.id == "unversioned":
        return labels
    labels["revision"] = commit.id + ("+dirty" if commit.dirty else "")
    return labels | ({"branch": commit.branch} if commit.branch else {})


def _said(facts: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in facts.items() if value not in (None, {})}
