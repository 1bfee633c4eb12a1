"""Runs of suites made up for tests of scores, checks and reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from machines import MACHINE

from benchwright.core.benchmark import Benchmark, Placement, Script
from benchwright.core.benchmark_folder import BenchmarkFolder
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.run import Launch, Result, Run
from benchwright.core.status import Reason, Status


def benchmark(name: str = "resnet", **fields: Any) -> Benchmark:
    given = {"folder": BenchmarkFolder(path=f"/suite/{name}", group=name, install_group=name)} | fields
    workload = Script(path=f"/suite/{name}/main.py", args=(), cwd=f"/suite/{name}", python="/venv/bin/python")
    return Benchmark(name=name, workload=workload, source="suite.yaml", **given)


def measured(metric: str, *samples: float, unit: str | None = "items/s", **fields: Any) -> Measurement:
    higher = Direction.HIGHER if unit and unit.endswith("/s") else Direction.LOWER
    given = {"direction": higher, "source": "loop"} | fields
    return Measurement(metric=metric, unit=unit, samples=samples, **given)


def launch(*rates: float, position: int = 0, seat: int = 0, more: Sequence[Measurement] = (), **fields: Any) -> Launch:
    """A process that told `rates`; `seat`: which one of those that ran together."""
    given = {"status": Status.OK, "exit_code": 0, "job": f"b.R{position}.{seat}", "facts": {"started": True}} | fields
    labels = {"job": str(seat)}
    return Launch(position=position, measurements=(measured("rate", *rates, labels=labels), *more), **given)


def result(name: str, *launches: Launch, of: Benchmark | None = None, **fields: Any) -> Result:
    return Result(benchmark=of or benchmark(name), launches=launches, **({"status": Status.OK} | fields))


def failed(name: str, detail: str = "exit code 1", **fields: Any) -> Result:
    bad = Launch(job=f"{name}.D0", status=Status.FAILED, reason=Reason.CRASHED, detail=detail, exit_code=1)
    return result(name, bad, of=benchmark(name, **fields), status=Status.FAILED, reason=Reason.CRASHED, detail=detail)


def on_devices(name: str, *rates: Sequence[float], **fields: Any) -> Result:
    """For each launch the rates of its devices: one process for each."""
    launches = [
        launch(rate, position=p, seat=d, devices=(d,), job=f"{name}.R{p}.D{d}")
        for p, together in enumerate(rates)
        for d, rate in enumerate(together)
    ]
    return result(name, *launches, of=benchmark(name, placement=Placement(per_device=True), **fields), overlap=0.997)


def run(*results: Result, **fields: Any) -> Run:
    given = {"id": "suite.1", "name": "suite", "started": "2026-11-15T10:00:00+00:00", "folder": "/f/runs/suite.1"}
    return Run(status=Status.OK, machine=MACHINE, results=results, **(given | fields))
