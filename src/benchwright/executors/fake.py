"""An executor that runs nothing: it writes the streams that jobs with the given samples would write."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.core.health import Leftovers, Mark
from benchwright.core.job import Job, Outcome
from benchwright.core.machine import Machine
from benchwright.executors.base import Executor, Listener, Site

_MACHINE = Machine(
    hostname="fake",
    system="Linux",
    kernel="0",
    architecture="none",
    cpu="fake processor",
    cores=4,
    cores_total=4,
    memory_bytes=8 << 30,
    python="3.11.0",
)
_PID = 1


class FakeExecutor:
    """`samples` maps a benchmark's name to its samples: the values of each of its metrics, or, if the job has none,
    the seconds of each measured step of its loop. `outcomes` makes benchmarks end otherwise.
    """

    def __init__(
        self,
        samples: Mapping[str, Sequence[float]],
        *,
        outcomes: Mapping[str, Outcome] | None = None,
        machine: Machine = _MACHINE,
    ) -> None:
        self._samples = samples
        self._outcomes = outcomes or {}
        self._machine = machine
        self._stopped = False
        self.ran: list[str] = []  # ids of the jobs, in the order they were run

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def machine(self) -> Machine:
        return self._machine

    def stop(self) -> None:
        self._stopped = True

    def end_leftovers(self, marks: Sequence[Mark]) -> Leftovers:
        return Leftovers()

    def run(self, jobs: Sequence[Job], listener: Listener) -> list[Outcome]:
        outcomes = []
        for job in jobs:
            if self._stopped:
                outcomes.append(Outcome(job=job.id, stopped=True))
                continue
            self.ran.append(job.id)
            listener.on_started(job.id, _PID)
            outcome = self._outcome(job)
            _write(job, self._samples.get(job.benchmark, ()), outcome)
            listener.on_finished(outcome)
            outcomes.append(outcome)
        return outcomes

    def _outcome(self, job: Job) -> Outcome:
        given = self._outcomes.get(job.benchmark)
        if given is not None:
            return msgspec.structs.replace(given, job=job.id)
        if job.benchmark not in self._samples:
            return Outcome(
                job=job.id, detail=f"command '{job.benchmark}' was not found; the fake executor has no samples"
            )
        duration_s = 0.0 if job.metrics else float(sum(self._samples[job.benchmark]))
        return Outcome(job=job.id, exit_code=0, duration_s=duration_s)


def _write(job: Job, samples: Sequence[float], outcome: Outcome) -> None:
    now_ns = time.perf_counter_ns()
    events: list[dict[str, object]] = [
        {"event": "stream", "t": now_ns, "version": 1, "job": job.id, "wall": time.time()},
        {
            "event": "start",
            "t": now_ns,
            "wall": time.time(),
            "pid": _PID,
            "argv": job.argv,
            "cwd": job.cwd,
            "env": {},
            "devices": job.devices,
            "cores": job.cores,
        },
        *(_metric_events(job, samples, now_ns) if job.metrics else _loop_events(job, samples, now_ns)),
        {
            "event": "end",
            "t": now_ns + int(outcome.duration_s * 1e9),
            "wall": time.time(),
            "cpu_s": outcome.duration_s,
            "max_rss_bytes": 1 << 20,
            **{name: value for name, value in msgspec.to_builtins(outcome).items() if name != "job"},
        },
    ]
    os.makedirs(os.path.dirname(job.stream), exist_ok=True)
    with open(job.stream, "a", encoding="utf-8") as stream:
        stream.writelines(json.dumps(event) + "\n" for event in events)
    if not (job.discard_log and outcome.exit_code == 0):
        Path(job.log + ".gz").write_bytes(gzip.compress(b""))


def _metric_events(job: Job, samples: Sequence[float], now_ns: int) -> list[dict[str, object]]:
    values = [float(value) for value in samples]
    lines = list(range(1, len(values) + 1))
    found = [
        {"event": "metric", "t": now_ns, "name": metric.name, "values": values, "lines": lines}
        for metric in job.metrics
        if values
    ]
    account = {"matches": len(values), "unparsed": 0, "cut_off": 0, "nearest": []}
    summary = {"metrics": {metric.name: account for metric in job.metrics}, "lines": len(values), "bytes": 0}
    return [*found, {"event": "extraction", **summary}]


def _loop_events(job: Job, samples: Sequence[float], now_ns: int) -> list[dict[str, object]]:
    extraction: dict[str, object] = {"event": "extraction", "metrics": {}, "lines": 0, "bytes": 0}
    if not samples:
        return [extraction]
    step_ns = [round(seconds * 1e9) for seconds in samples]
    of_loop = {"process": _PID, "t": now_ns, "loop": 1}
    return [
        {"event": "probe", "process": _PID, "version": 1, "t": now_ns, "wall": time.time(), "rank": None,
         "python": "3.11.0", "executable": "python", "prefix": "", "path": [], "argv": job.argv},
        {"event": "loop", **of_loop, "name": "train", "total": None, "parent": None, "batch_size": 1, "counts": True},
        {"event": "measure", **of_loop, "step": 0, "warmup": "given", "waited_ns": 0},
        {"event": "steps", **of_loop, "first": 0, "phase": "measured", "step_ns": step_ns,
         "wait_ns": [0] * len(step_ns), "items": 1, "given": {}},
        {"event": "stop", **of_loop, "step": len(step_ns), "rule": "steps", "steps": len(step_ns), "detail": None},
        {"event": "loop_end", **of_loop, "steps": len(step_ns), "how": "stopped"},
        {"event": "probe_end", "process": _PID, "t": now_ns + sum(step_ns), "how": "end"},
        extraction,
    ]  # fmt: skip


def open_executor(argument: str, site: Site) -> Executor:
    """`--on fake:NAME=0.10,0.11;OTHER=2.5`: the samples of each benchmark; any other fails."""
    samples: dict[str, list[float]] = {}
    for part in filter(None, argument.split(";")):
        name, _, values = part.rpartition("=")
        try:
            samples[name] = [float(value) for value in values.split(",")]
        except ValueError:
            raise InvalidInput(
                f"'{part}' is not NAME=NUMBER,NUMBER…", where="--on fake", remedy="write fake:train=0.10,0.11"
            ) from None
    return FakeExecutor(samples)
