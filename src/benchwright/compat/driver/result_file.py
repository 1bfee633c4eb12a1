"""`dlbenchmark_result.json`, with the keys of the deep-learning benchmark driver.

Keys are `[framework.]task.metric[.suffix]`; every key of a task has its prefix and suffix, memory and uptime included.
A task's number is its launch's number; over several launches, their median.
"""

from __future__ import annotations

import json
import math
import os
import statistics
from collections.abc import Sequence

import msgspec

from benchwright.agent.machine.fingerprint import machine_uptime_s
from benchwright.core.run import Launch, Result, Run
from benchwright.core.status import Status
from benchwright.core.summary import PEAK_RSS
from benchwright.core.whole_file import write_whole
from benchwright.report.base import Aggregate, Report

FILE_NAME = "dlbenchmark_result.json"
_KIB = 1024
_MIB = 1024 * 1024


class DriverResults(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the file; `problems` says what is missing, and why."""

    values: dict[str, float]
    problems: tuple[str, ...] = ()


class WrittenFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Where the file was written, and where it could not be."""

    paths: tuple[str, ...]
    problems: tuple[str, ...] = ()


class DriverReporter:
    """The text of `dlbenchmark_result.json`."""

    name = "driver"
    why_one_run = "a file of the driver holds one run"

    def render(self, report: Report) -> str:
        results = driver_results(
            report.run.results, aggregate=report.aggregate, workers=report.workers, uptime_s=report.uptime_s
        )
        return json.dumps(results.values, indent=4) + "\n"


def driver_result(
    result: Result, *, aggregate: Aggregate, workers: int | None = None, uptime_s: float | None = None
) -> dict[str, float]:
    """The keys and numbers of one task. `uptime_s` is the machine's, as in the driver.

    `aggregate` condenses one launch's values; the caller handles what it raises.
    """
    prefix = result.benchmark.result_prefix or result.benchmark.name
    suffix = f".{result.benchmark.result_suffix}" if result.benchmark.result_suffix else ""
    launches = [_launch_values(result, launch, aggregate, workers) for launch in result.counted]
    names = dict.fromkeys(name for values in launches for name in values)
    found = {name: _median([v[name] for v in launches if name in v]) for name in names}
    if uptime_s is not None:
        found["uptime_in_seconds"] = uptime_s
    return {f"{prefix}.{name}{suffix}": value for name, value in found.items()}


def driver_results(
    results: Sequence[Result], *, aggregate: Aggregate, workers: int | None = None, uptime_s: float | None = None
) -> DriverResults:
    """Of all successful driver tasks (those with a `result_prefix`)."""
    values: dict[str, float] = {}
    problems = []
    for result in results:
        if result.benchmark.result_prefix is None or result.status is not Status.OK:
            continue
        try:
            found = driver_result(result, aggregate=aggregate, workers=workers, uptime_s=uptime_s)
        except ValueError as error:
            problems.append(f"{result.benchmark.name} is not in {FILE_NAME}: {error}")
            continue
        twice = values.keys() & found.keys()
        if twice:
            problems.append(
                f"{result.benchmark.name} is not in {FILE_NAME}: {min(twice)} is already there; use --metrics-suffix"
            )
            continue
        values.update(found)
    return DriverResults(values=values, problems=tuple(problems))


def write_driver_result(
    run: Run,
    folders: Sequence[str],
    *,
    aggregate: Aggregate,
    workers: int | None = None,
    uptime_s: float | None = None,
) -> WrittenFiles:
    """Writes the file to every folder, whole or not at all; nothing if the run has no driver task.

    If no task succeeded the file is `{}`: a file of an earlier run must not pass for this run's. A folder that cannot be
    written becomes a problem; the others are written.
    """
    if all(result.benchmark.result_prefix is None for result in run.results):
        return WrittenFiles(paths=())
    uptime = machine_uptime_s() if uptime_s is None else uptime_s
    results = driver_results(run.results, aggregate=aggregate, workers=workers, uptime_s=uptime)
    text = json.dumps(results.values, indent=4) + "\n"
    paths, problems = [], list(results.problems)
    for folder in dict.fromkeys(os.path.abspath(folder) for folder in folders):
        path = os.path.join(folder, FILE_NAME)
        try:
            write_whole(path, text.encode())
        except OSError as error:
            problems.append(f"{path} could not be written: {error.strerror or error}")
        else:
            paths.append(path)
    return WrittenFiles(paths=tuple(paths), problems=tuple(problems))


def _launch_values(result: Result, launch: Launch, aggregate: Aggregate, workers: int | None) -> dict[str, float]:
    values: dict[str, float] = {}
    for spec in result.benchmark.metrics:
        samples = [
            s
            for m in launch.measurements
            if m.metric in (spec.name, f"log.{spec.name}") and m.source == "log"
            for s in m.samples
        ]
        if samples:
            values[spec.name] = aggregate(spec.aggregate, samples, workers)
    # The kernel's maximum exists even for a program that ended before the first sample.
    memory = [s for m in launch.measurements if m.metric in ("memory.rss", PEAK_RSS) for s in m.samples]
    if memory:
        values["cpu_memory_usage"] = max(memory) / _KIB
    values.update(_gpu_memory(result, launch))
    return values


def _gpu_memory(result: Result, launch: Launch) -> dict[str, float]:
    """Mean, deviation and peak of each of the launch's GPUs, averaged over the GPUs; nothing for a task without GPUs."""
    if not launch.devices and not result.benchmark.placement.needs_devices:
        return {}
    mine = {str(device) for device in launch.devices}
    series = [
        m.samples
        for m in launch.measurements
        if m.metric == "gpu.memory" and m.samples and (not mine or m.labels.get("device") in mine)
    ]
    if not series:
        return {}
    return {
        "gpu_memory_usage_mean": statistics.fmean(statistics.fmean(s) for s in series) / _MIB,
        "gpu_memory_usage_std": statistics.fmean(statistics.stdev(s) if len(s) > 1 else 0.0 for s in series) / _MIB,
        "gpu_memory_usage_max": statistics.fmean(max(s) for s in series) / _MIB,
    }


def _median(values: Sequence[float]) -> float:
    return math.nan if any(map(math.isnan, values)) else float(statistics.median(values))
