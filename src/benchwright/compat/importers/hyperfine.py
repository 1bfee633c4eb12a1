"""`hyperfine --export-json FILE`: every time comes from its own process, so every time is a launch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.machine import UNKNOWN
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.run import Launch, Result, Run
from benchwright.core.status import Status
from benchwright.core.summary import PEAK_RSS
from benchwright.runs.foreign_json import body_of, load, shaped
from benchwright.runs.imported_run import (
    as_text,
    at,
    make_machine,
    make_run,
    measurement,
    printed_objects,
    printed_times,
)

TOOL = "hyperfine"


class _Result(msgspec.Struct, frozen=True):
    command: str
    mean: float
    median: float | None = None
    user: float | None = None
    system: float | None = None
    times: list[float] | None = None
    exit_codes: list[int | None] = []
    memory_usage_byte: list[float] | None = None  # from version 1.19 on
    parameters: dict[str, Any] | None = None


class _File(msgspec.Struct, frozen=True):
    results: list[_Result]


class HyperfineImporter:
    name = TOOL

    def recognises(self, path: Path) -> bool:
        body = body_of(path)
        results = body.get("results") if isinstance(body, dict) else None
        if not isinstance(results, list) or not results or not isinstance(results[0], dict):
            return False
        return {"command", "mean"} <= results[0].keys()

    def read(self, path: Path) -> list[Run]:
        file = load(path)
        body = shaped(file.body, _File, where=file.path, tool=TOOL)
        results, position = [], 0
        for found in body.results:
            results.append(_result(found, position))
            position += len(results[-1].launches)
        return make_run(file, TOOL, results, machine=make_machine(), started=None)

    def printed(self, document: Mapping[str, object]) -> Iterator[dict[str, object]]:
        for row in printed_objects(document.get("results")):
            if "command" in row:
                yield from printed_times(row["command"], row.get("times"), row)


def _result(found: _Result, position: int) -> Result:
    times = found.times if found.times else [found.mean if found.median is None else found.median]
    launches = tuple(
        Launch(
            job="",  # named when the run is made
            status=Status.OK,
            launch=index,
            position=position + index,
            duration_s=seconds if found.times else None,
            exit_code=at(found.exit_codes, index),
            measurements=tuple(_measurements(found, index, seconds)),
        )
        for index, seconds in enumerate(times)
    )
    benchmark = Benchmark(
        name=found.command,
        # hyperfine does not record whether a shell ran it; by default one does.
        workload=Command(argv=(found.command,), cwd=UNKNOWN, shell=True),
        source=TOOL,
        parameters={key: as_text(value) for key, value in (found.parameters or {}).items()},
        notes=tuple(_remarks(found)),
    )
    return Result(benchmark=benchmark, status=Status.OK, launches=launches)


def _measurements(found: _Result, index: int, seconds: float) -> list[Measurement]:
    lower = Direction.LOWER
    measured = [measurement("process.duration", "s", lower, (seconds,), source="process")]
    memory = at(found.memory_usage_byte, index)
    if memory:
        measured.append(measurement(PEAK_RSS, "B", lower, (memory,), source="process"))
    if index == 0 and found.user is not None and found.system is not None:
        # One figure for all launches: attached to the first only, so that it does not look like several.
        cpu_s = found.user + found.system
        mean = {"statistic": "mean of all launches"}
        measured.append(measurement("process.cpu_time", "s", lower, (cpu_s,), source="process", labels=mean))
    return measured


def _remarks(found: _Result) -> list[str]:
    if not found.times:
        return ["the file has no individual times: hyperfine's own median was imported as one number"]
    remarks = []
    bad = sum(1 for code in found.exit_codes if code != 0)
    if bad:
        remarks.append(
            f"{bad} of {len(found.times)} launches had a non-zero exit code, ignored on request (--ignore-failure)"
        )
    zero = sum(1 for seconds in found.times if seconds == 0)
    if zero:
        remarks.append(
            f"{zero} of {len(found.times)} times are 0: hyperfine subtracted more for its shell than the command took; use hyperfine -N"
        )
    return remarks
