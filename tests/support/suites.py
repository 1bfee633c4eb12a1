"""Benchmarks of suites, the machines they are planned for, and their plans."""

from __future__ import annotations

from typing import Any

import msgspec
from builders import MACHINE

from benchwright.core.benchmark import Benchmark, BenchmarkFolder, Environment, Placement, Script
from benchwright.core.job import Job
from benchwright.core.machine import Accelerator, Machine
from benchwright.core.run import Plan
from benchwright.core.system import SuitePaths, System
from benchwright.kinds.registry import kind_of
from benchwright.options.table import Options
from benchwright.plan.placement import make_plan

FOLDER = "/base/runs/RUN"
PATHS = SuitePaths(
    base="/base", data="/base/data", extra="/base/extra", cache="/base/cache", venv="/base/venv", runs="/base/runs"
)
PER_GPU = Placement(per_device=True)
ONE_JOB = Placement(jobs=1, numbered=True)


def machine_with(gpus: int, *, cores: int = 64, gpu_bytes: int = 80 << 30) -> Machine:
    accelerators = tuple(Accelerator(index=i, name="H100", memory_bytes=gpu_bytes) for i in range(gpus))
    return msgspec.structs.replace(MACHINE, cores=cores, accelerators=accelerators)


def entry(name: str = "bench", *args: str, folder: dict[str, Any] | None = None, **fields: Any) -> Benchmark:
    """A suite's benchmark whose main script gets `args`."""
    given = {"path": "/suite/bench", "group": "grp", **(folder or {})}
    script = Script(path=f"{given['path']}/main.py", args=args, cwd=given["path"], python="")
    fields.setdefault("placement", PER_GPU)
    return Benchmark(
        name=name,
        workload=script,
        source=f"suite.yaml [{name}]",
        environment=Environment(name="torch", folder=given["path"]),
        folder=BenchmarkFolder(**given),
        **fields,
    )


def planned(
    *benchmarks: Benchmark,
    gpus: int = 2,
    system: System | None = None,
    paths: SuitePaths = PATHS,
    options: Options | None = None,
    machine: Machine | None = None,
) -> Plan:
    if system is not None:
        paths = msgspec.structs.replace(paths, system=system)
    return make_plan(
        benchmarks,
        machine or machine_with(gpus),
        msgspec.structs.replace(options or Options(), suite_paths=paths),
        kind_of,
        folder=FOLDER,
        probe_path="/base/artifacts/probe",
        usable_cores=[0],
    )


def jobs_of(*benchmarks: Benchmark, **how: Any) -> tuple[Job, ...]:
    """Those of the only launch."""
    (jobs,) = planned(*benchmarks, **how).launches
    return jobs
