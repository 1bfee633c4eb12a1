"""The nouns, made with what a test says and defaults for the rest."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec

from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.job import Job
from benchwright.core.machine import Accelerator, Machine
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.run import Launch, Result, Run
from benchwright.core.status import Reason, Status

MACHINE = Machine(
    hostname="host",
    system="Linux",
    kernel="6.1",
    architecture="x86_64",
    cpu="processor",
    cores=2,
    cores_total=2,
    memory_bytes=1 << 33,
    python="3.11.7",
)


def machine(*gpus: Accelerator, **fields: Any) -> Machine:
    return msgspec.structs.replace(MACHINE, accelerators=gpus, **fields)


def benchmark(name: str = "b", *argv: str, **fields: Any) -> Benchmark:
    """A command of that name."""
    given: dict[str, Any] = {"workload": Command(argv=argv or ("x",), cwd="/"), "source": "test"}
    return Benchmark(name=name, **(given | fields))


def measurement(
    *samples: float,
    metric: str = "rate",
    unit: str | None = "items/s",
    direction: Direction | None = None,
    **fields: Any,
) -> Measurement:
    """More is better of what is counted per second, less of everything else, unless a direction is given."""
    better = Direction.HIGHER if unit and unit.endswith("/s") else Direction.LOWER
    return Measurement(
        metric=metric, unit=unit, samples=samples, direction=direction or better, **({"source": "loop"} | fields)
    )


def launch(*measurements: Measurement, **fields: Any) -> Launch:
    """One that went well."""
    return Launch(measurements=measurements, **({"job": "b.D0", "status": Status.OK} | fields))


def failed_launch(**fields: Any) -> Launch:
    """One that crashed."""
    return launch(**({"status": Status.FAILED, "reason": Reason.CRASHED} | fields))


def result(of: Benchmark | str, *launches: Launch, **fields: Any) -> Result:
    """One that is fine; of a command, if only its name is given."""
    what = benchmark(of) if isinstance(of, str) else of
    return Result(benchmark=what, launches=launches, **({"status": Status.OK} | fields))


def failed_result(of: Benchmark | str, *launches: Launch, **fields: Any) -> Result:
    """One that crashed."""
    return result(of, *launches, **({"status": Status.FAILED, "reason": Reason.CRASHED} | fields))


def run(*results: Result, id: str = "run.1", **fields: Any) -> Run:
    given: dict[str, Any] = {
        "name": id.partition(".")[0],
        "started": "2026-11-15T10:00:00+00:00",
        "folder": f"/f/runs/{id}",
        "status": Status.OK,
        "machine": MACHINE,
    }
    return Run(id=id, results=results, **(given | fields))


def job(*argv: str, folder: Path | str = "/f", id: str = "job", **fields: Any) -> Job:
    """One whose files lie in `folder`, where it also runs. It is given half a second to end."""
    files = {"cwd": str(folder), "stream": f"{folder}/{id}.data", "log": f"{folder}/{id}.log"}
    given: dict[str, Any] = {"benchmark": id, "argv": argv or ("x",), "grace_s": 0.5}
    return Job(id=id, **(given | files | fields))


def events(stream: Job | Path | str, kind: str | None = None) -> list[dict[str, Any]]:
    """Those in a job's stream, or in a file of JSON lines; of one kind only, if that is given."""
    path = Path(stream.stream if isinstance(stream, Job) else stream)
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [event for event in found if kind is None or event["event"] == kind]


def git(folder: Path, *words: str) -> str:
    """What git printed, whatever the user's own configuration is."""
    who = ["-c", "user.name=t", "-c", "user.email=t@example.test", "-c", "commit.gpgsign=false"]
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True, env=env)
    return done.stdout.strip()
