"""Runs the jobs of a model that this process holds: those that need the module here, the others by another executor."""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from benchwright.app.launches.printed import printed
from benchwright.core.job import Job, Outcome
from benchwright.core.machine import Machine
from benchwright.core.node.leftovers import Leftovers, Mark
from benchwright.executors.base import Executor, Listener

if TYPE_CHECKING:
    from benchmodels.measure.here import HeldModel


class HeldModelExecutor:
    """`within` runs the processes that measure builds; it is closed with this one."""

    def __init__(self, model: HeldModel, within: Executor) -> None:
        self._model = model
        self._within = within
        self._stopped = False

    def __enter__(self) -> Self:
        self._within.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._within.__exit__(kind, error, trace)

    def machine(self) -> Machine:
        return self._within.machine()

    def end_leftovers(self, marks: Sequence[Mark]) -> Leftovers:
        return self._within.end_leftovers(marks)

    def stop(self) -> None:
        """What runs in this process ends by its own stop rule."""
        self._stopped = True
        self._within.stop()

    def run(self, jobs: Sequence[Job], listener: Listener) -> list[Outcome]:
        return [self._run(job, listener) for job in jobs]

    def _run(self, job: Job, listener: Listener) -> Outcome:
        from benchmodels.measure.here import build_here, is_measured_here, measure_here
        from benchmodels.settings import BUILT_BEFORE, BUILT_NOW, PART, settings_from

        if self._stopped:
            return Outcome(job=job.id, stopped=True)
        settings = settings_from(job.probe[PART])
        if is_measured_here(settings.runtime):
            with _Written(job, listener) as written, printed() as log:
                written.log = log
                measure_here(self._model, json.dumps({"stream": job.stream, **job.probe}))
            return written.outcome
        with printed() as log:
            built = build_here(self._model, settings)
        if built.failed:
            with _Written(job, listener) as written:
                written.log = log
                written.add(built.events)
            return written.outcome
        part = {**job.probe[PART], "rebuild": "never", "built_by_caller": BUILT_NOW if built.made else BUILT_BEFORE}
        own = msgspec.structs.replace(job, probe={**job.probe, PART: part})
        return self._within.run([own], listener)[0]


class _Written:
    """The frame of a stream, which an agent writes elsewhere."""

    def __init__(self, job: Job, listener: Listener) -> None:
        self._job = job
        self._listener = listener
        self._began_ns = time.perf_counter_ns()
        self._cpu_s = time.process_time()
        self.outcome = Outcome(job=job.id)
        self.log = StringIO()

    def __enter__(self) -> Self:
        job, here = self._job, {"t": self._began_ns, "wall": time.time()}
        start = {"pid": os.getpid(), "argv": job.argv, "cwd": os.getcwd(), "env": {}, "devices": job.devices}
        self.add(
            [
                {"event": "stream", **here, "version": 1, "job": job.id},
                {"event": "start", **here, **start, "cores": None},
            ]
        )
        self._listener.on_started(job.id, os.getpid())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        job, now_ns = self._job, time.perf_counter_ns()
        self.outcome = Outcome(job=job.id, exit_code=0, duration_s=(now_ns - self._began_ns) / 1e9)
        told = {name: value for name, value in msgspec.to_builtins(self.outcome).items() if name != "job"}
        end = {"event": "end", "t": now_ns, "wall": time.time(), "cpu_s": time.process_time() - self._cpu_s, **told}
        nothing_read = {"event": "extraction", "t": now_ns, "metrics": {}, "lines": 0, "bytes": 0}
        self.add([nothing_read, end])
        if not job.discard_log:
            Path(f"{job.log}.gz").write_bytes(gzip.compress(self.log.getvalue().encode(errors="replace")))
        self._listener.on_finished(self.outcome)

    def add(self, events: Sequence[Mapping[str, Any]]) -> None:
        with open(self._job.stream, "a", encoding="utf-8") as stream:
            stream.writelines(json.dumps(event) + "\n" for event in events)
