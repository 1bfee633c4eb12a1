"""`dlbenchmark_result.json` of the deep-learning benchmark driver: one number for each `[framework.]task.metric[.suffix]`.

The dots alone do not show where the task ends, but the driver writes its own metrics (`uptime_in_seconds`,
`cpu_memory_usage`…) for every task: before them stands the task, after them the suffix.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction, guess_direction
from benchwright.core.reported import is_number
from benchwright.core.run import Run
from benchwright.runs.foreign_json import body_of, load
from benchwright.runs.imported_run import UNKNOWN_WORKLOAD, make_machine, make_run, measurement, one_launch

TOOL = "driver"
_UNITS = {
    "uptime_in_seconds": "s",
    "cpu_memory_usage": "KiB",
    "gpu_memory_usage_mean": "MiB",
    "gpu_memory_usage_std": "MiB",
    "gpu_memory_usage_max": "MiB",
}
_OWN_METRIC = re.compile(rf"(.+)\.(?:{'|'.join(_UNITS)})(?:\.(.+))?", re.DOTALL)
_NO_SAMPLES = "the driver keeps one number for each metric: how much it varied is unknown"


class _Task(NamedTuple):
    prefix: str
    suffix: str | None

    def metric_of(self, key: str) -> str | None:
        """The metric in `key`, or None if it is not a key of this task."""
        tail = f".{self.suffix}" if self.suffix else ""
        begins, ends = key.startswith(f"{self.prefix}."), key.endswith(tail)
        metric = key[len(self.prefix) + 1 : len(key) - len(tail)] if begins and ends else ""
        return metric or None


class DriverImporter:
    name = TOOL

    def recognises(self, path: Path) -> bool:
        body = body_of(path)
        return (
            isinstance(body, dict)
            and bool(body)
            and all("." in key and is_number(value) for key, value in body.items())
        )

    def read(self, path: Path) -> list[Run]:
        file = load(path)
        if not isinstance(file.body, dict):
            raise InvalidInput("not a file of the driver: no object of keys and numbers", where=file.path)
        tasks: dict[_Task, dict[str, float]] = {}
        known = _own_tasks(file.body)
        for key, value in file.body.items():
            if not is_number(value):
                raise InvalidInput(
                    f"not a file of the driver: '{key}' is not a number",
                    where=file.path,
                    remedy="give dlbenchmark_result.json",
                )
            task, metric = _split(key, known)
            tasks.setdefault(task, {})[metric] = float(value)
        results = [
            one_launch(_benchmark(task), [_measured(*item) for item in values.items()], position=position)
            for position, (task, values) in enumerate(tasks.items())
        ]
        return make_run(file, TOOL, results, machine=make_machine(), started=None, notes=(_NO_SAMPLES,))


def _own_tasks(body: dict[str, object]) -> list[_Task]:
    """The tasks that the driver's own metrics show, the longest names first."""
    tasks = {_Task(match[1], match[2]) for key in body if (match := _OWN_METRIC.fullmatch(key))}
    return sorted(tasks, key=lambda task: (-len(task.prefix), -len(task.suffix or ""), task.prefix, task.suffix or ""))


def _split(key: str, known: list[_Task]) -> tuple[_Task, str]:
    for task in known:
        if metric := task.metric_of(key):
            return task, metric
    prefix, _, metric = key.rpartition(".")
    return (_Task(prefix, None), metric) if prefix and metric else (_Task(key, None), "value")


def _benchmark(task: _Task) -> Benchmark:
    name = f"{task.prefix}.{task.suffix}" if task.suffix else task.prefix
    labels = {"suffix": task.suffix} if task.suffix else {}
    return Benchmark(name=name, workload=UNKNOWN_WORKLOAD, source="dlbenchmark_result.json", labels=labels)


def _measured(metric: str, value: float) -> Measurement:
    unit = _UNITS.get(metric)
    # The machine's uptime says nothing about the task.
    direction = Direction.NEITHER if metric == "uptime_in_seconds" else guess_direction(metric, unit)
    return measurement(metric, unit, direction, (value,))
