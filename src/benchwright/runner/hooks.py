"""Runs the user's commands around launches: `--setup`, `--prepare` and `--cleanup`.

Each is a separate job where the launches run, so its time is no part of any result, and it ends when the run is
interrupted. If it fails, so do the launches it was meant for, with its output as their log.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from benchwright.agent.stream import VERSION, StreamWriter
from benchwright.agent.supervise.barrier import leave_barrier
from benchwright.core.benchmark import Command
from benchwright.core.job import Job, Outcome
from benchwright.core.run import Plan
from benchwright.core.secrets import redact_text, redact_words
from benchwright.executors.base import Executor
from benchwright.executors.observer import Observer
from benchwright.record import read_events

Hook = Literal["setup", "prepare", "cleanup"]


class _Failure(msgspec.Struct, frozen=True):
    why: str
    job: Job  # whose log tells more


class HookRunner:
    """The hooks of one run. A setup or cleanup that several benchmarks have in common is run once for all of them."""

    def __init__(self, plan: Plan) -> None:
        self._broken: dict[Command, _Failure] = {}  # setups
        self._set_up: set[Command] = set()  # setups that were run
        self._began = False
        self.plan_is(plan)

    def plan_is(self, plan: Plan) -> None:
        """Of a run that grows: what it will launch is known later."""
        self._benchmarks = {b.name: b for b in plan.benchmarks}
        self._first = {launch[0].benchmark: launch[0] for launch in reversed(plan.launches)}

    def before(self, launch: Sequence[Job], executor: Executor, observer: Observer) -> bool:
        """Runs what a launch needs first. False: that failed, and the launch is recorded as failed."""
        first = launch[0]
        hooks = self._benchmarks[first.benchmark].hooks
        self._began = True
        for command, job in self._distinct("setup"):
            if command not in self._set_up:
                self._set_up.add(command)
                if failure := _run("setup", command, job, f"setup-{len(self._set_up)}", executor, observer):
                    self._broken[command] = failure
        failure = None if hooks.setup is None else self._broken.get(hooks.setup)
        if failure is None and hooks.prepare is not None:
            failure = _run("prepare", hooks.prepare, first, f"{first.id}.prepare", executor, observer)
        if failure is None:
            return True
        for job in launch:
            _record(failure, job)
        for ending in (".log", ".log.gz"):
            with suppress(OSError):  # it printed nothing, or another launch that failed for the same reason has it
                Path(failure.job.log).with_suffix(ending).rename(Path(first.log).with_suffix(ending))
        return False

    def after(self, executor: Executor, observer: Observer) -> Iterator[str]:
        """Runs the cleanups, unless nothing was launched; yields what went wrong."""
        for number, (command, job) in enumerate(self._distinct("cleanup") if self._began else (), start=1):
            if failure := _run("cleanup", command, job, f"cleanup-{number}", executor, observer):
                run = Path(job.stream).parent.name
                yield f"{failure.why}; see 'benchwright logs {run} {failure.job.id}'"

    @property
    def has_cleanup(self) -> bool:
        return self._began and bool(self._distinct("cleanup"))

    def _distinct(self, hook: Hook) -> list[tuple[Command, Job]]:
        """Each with a job of the first benchmark that has it."""
        found: dict[Command, Job] = {}
        for name, job in self._first.items():
            command: Command | None = getattr(self._benchmarks[name].hooks, hook)
            if command is not None:
                found.setdefault(command, job)
        return list(found.items())


def _run(hook: Hook, command: Command, like: Job, name: str, executor: Executor, observer: Observer) -> _Failure | None:
    """Where and in the environment in which `like` runs. None: it ended well, or was stopped together with the run."""
    folder = Path(like.stream).parent
    job = Job(
        id=name,
        benchmark=like.benchmark,
        argv=command.argv,
        cwd=command.cwd,
        shell=command.shell,
        stream=f"{folder}/{name}.data",
        log=f"{folder}/{name}.log",
        env=like.env,
        node=like.node,
        path=like.path,
        phase=hook,
        grace_s=like.grace_s,
        echo=like.echo,
        discard_log=True,
    )
    (outcome,) = executor.run([job], observer)
    with suppress(OSError):  # there is none if it was stopped before it began
        for event in read_events(job.stream):
            if event.get("event") == "message" and event.get("severity") == "warning":  # it left processes behind
                observer.on_trouble(f"--{hook}: {event.get('text')}")
        Path(job.stream).unlink()
    if outcome.stopped and hook != "cleanup":
        return None
    return None if outcome.exit_code == 0 else _Failure(f"--{hook} {_ending(outcome, command)}", job)


def _ending(outcome: Outcome, command: Command) -> str:
    words = redact_text(command.argv[0]) if command.shell else shlex.join(redact_words(command.argv))
    if outcome.stopped:
        return f"was interrupted: {words}"
    if outcome.exit_code is None and outcome.signal is None:
        return f"could not be run: {outcome.detail}"
    how = f"exit code {outcome.exit_code}" if outcome.signal is None else f"signal {outcome.signal}"
    return f"failed ({how}): {words}"


def _record(failure: _Failure, job: Job) -> None:
    """Ends the stream of a job that was never started, so that the run can be read."""
    leave_barrier(job)
    stream = StreamWriter(job.stream)
    now = {"t": time.perf_counter_ns(), "wall": time.time()}
    stream.append("stream", version=VERSION, job=job.id, **now)
    stream.append("end", not_ready=True, exit_code=None, duration_s=0.0, detail=failure.why, **now)
    stream.flush()
    stream.close()
