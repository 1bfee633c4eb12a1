"""The planner's interface to a kind: which processes its benchmarks need, and how to start each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.job import JobBuild, StepsApart
from benchwright.core.machine import Machine
from benchwright.core.status import Reason
from benchwright.options.table import Options
from benchwright.plan.process_slots import ProcessSlot, plain_slots


class PlanContext(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that are the same for every job of a plan."""

    machine: Machine
    options: Options
    folder: str  # of the run
    probe_path: str | None = None  # the folder that holds benchprobe
    usable_cores: tuple[int, ...] = ()
    count_work: bool = False  # scripts being searched for models count their arithmetic


class JobCommand(msgspec.Struct, frozen=True):
    """The part of a Job that says what is executed, and with which environment and files."""

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str | None]
    path: tuple[str, ...] = ()
    files: dict[str, str] = {}
    data_file: str | None = None
    dialect: str | None = None  # of the lines that it writes to $DATA_FD
    folders: tuple[str, ...] = ()
    unrecorded: tuple[str, ...] = ()  # variables that repeat the plan
    shell: bool = False
    probe: dict[str, Any] = {}  # options for benchprobe besides those of the loop
    echo: bool = False  # show what it prints, even if the user did not ask
    fetch: tuple[str, ...] = ()  # files it writes that are to be brought back
    cores: tuple[int, ...] | None = None  # to pin it to, unless the user says otherwise
    cooldown_s: float = 0.0  # between the end of the launch before and its start
    wait_s: float = 0.0  # before its start
    apart: StepsApart | None = None  # on a board: its steps here, its program there
    build: JobBuild | None = None
    ahead: bool = False  # it can start up while another one is measured, and then wait for its turn
    warm: tuple[str, ...] = ()  # modules that may be imported before the process is forked
    check_timeout_s: float | None = None
    printed: str | None = None  # lines of the log that contain this are events, too; empty: all lines


class Planner(Protocol):
    """Plans the benchmarks of one kind. The defaults are those of a plain command: subclass it and change what differs."""

    context: PlanContext

    def why_skipped(self, benchmark: Benchmark) -> tuple[Reason, str] | None:
        """The reason and a sentence if this machine cannot run it; None if it can."""
        needed, present = benchmark.placement.needs_devices, len(self.context.machine.accelerators)
        if needed <= present:
            return None
        has = {0: "no GPU", 1: "1 GPU"}.get(present, f"{present} GPUs")
        needs = f"needs {needed} GPU{'s' if needed > 1 else ''}, this machine has {has}"
        return Reason.LACKS_DEVICES, f"{needs}; use {self.fewer_devices(benchmark, present)}"

    def fewer_devices(self, benchmark: Benchmark, present: int) -> str:
        """The option that asks for no more devices than are present."""
        return f"--num-gpus {present}"

    def why_no_turns(self, benchmark: Benchmark) -> str | None:
        """Why it cannot take turns with other benchmarks; None if it can."""
        return None

    def slots(self, benchmark: Benchmark) -> list[ProcessSlot]:
        """The processes of one launch."""
        return plain_slots(benchmark, self.context.machine)

    def command(self, benchmark: Benchmark, slot: ProcessSlot, job: str, launch: int | None) -> JobCommand:
        """How to start the process called `job`."""
        work = benchmark.workload
        return JobCommand(work.words, work.cwd, benchmark.env, shell=work.shell)

    def notes(self, benchmark: Benchmark) -> tuple[str, ...]:
        """Choices that a reader of the results should know, one sentence each."""
        return ()


class PlainPlanner(Planner):
    """Runs the workload as written."""

    def __init__(self, context: PlanContext) -> None:
        self.context = context


class PlansJobs(Protocol):
    """A kind, as the planner knows it."""

    def planner(self, context: PlanContext) -> Planner: ...


Kinds = Callable[[Benchmark], PlansJobs]  # a benchmark's kind
