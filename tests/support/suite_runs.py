"""Runs of suites made up for tests of scores, checks and reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import builders
from builders import failed_launch, failed_result

from benchwright.core.benchmark import Benchmark, BenchmarkFolder, Placement, Script
from benchwright.core.measurement import Measurement
from benchwright.core.run import Launch, Result, Run


def benchmark(name: str = "resnet", **fields: Any) -> Benchmark:
    given = {"folder": BenchmarkFolder(path=f"/suite/{name}", group=name)} | fields
    workload = Script(path=f"/suite/{name}/main.py", args=(), cwd=f"/suite/{name}", python="/venv/bin/python")
    return Benchmark(name=name, workload=workload, source="suite.yaml", **given)


def measured(metric: str, *samples: float, unit: str | None = "items/s", **fields: Any) -> Measurement:
    return builders.measurement(*samples, metric=metric, unit=unit, **fields)


def launch(*rates: float, position: int = 0, seat: int = 0, more: Sequence[Measurement] = (), **fields: Any) -> Launch:
    """A process that told `rates`; `seat`: which one of those that ran together."""
    given = {"position": position, "exit_code": 0, "job": f"b.R{position}.{seat}", "facts": {"started": True}}
    return builders.launch(measured("rate", *rates, labels={"job": str(seat)}), *more, **(given | fields))


def result(name: str, *launches: Launch, of: Benchmark | None = None, **fields: Any) -> Result:
    return builders.result(of or benchmark(name), *launches, **fields)


def failed(name: str, detail: str = "exit code 1", **fields: Any) -> Result:
    bad = failed_launch(job=f"{name}.D0", detail=detail, exit_code=1)
    return failed_result(benchmark(name, **fields), bad, detail=detail)


def on_devices(name: str, *rates: Sequence[float], **fields: Any) -> Result:
    """For each launch the rates of its devices: one process for each."""
    launches = [
        launch(rate, position=p, seat=d, devices=(d,), job=f"{name}.R{p}.D{d}")
        for p, together in enumerate(rates)
        for d, rate in enumerate(together)
    ]
    return result(name, *launches, of=benchmark(name, placement=Placement(per_device=True), **fields), overlap=0.997)


def run(*results: Result, **fields: Any) -> Run:
    return builders.run(*results, **({"id": "suite.1"} | fields))
