"""The executor seam. An entry point of the group `benchwright.executors` names an `OpenExecutor`.

`--on NAME:ARGUMENT` opens the one called NAME. Every variant passes tests/contracts/test_executor_contract.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

import msgspec

from benchwright.core.health import Leftovers, Mark
from benchwright.core.job import Job, Outcome
from benchwright.core.machine import Machine
from benchwright.core.system import Node, System
from benchwright.options.table import Options

ENTRY_POINT_GROUP = "benchwright.executors"


class Listener:
    """Notified while jobs run, in the thread that called `run`. Override the methods of interest."""

    def on_started(self, job_id: str, pid: int) -> None:
        """The job's program runs."""

    def on_output(self, job_id: str, text: str) -> None:
        """It printed something; only for jobs with `echo`."""

    def on_progress(self, job_id: str, values: Mapping[str, object]) -> None:
        """Its latest values: `elapsed_s`, `rss_bytes`, `cpu_percent`, `metrics`…"""

    def on_finished(self, outcome: Outcome) -> None:
        """It ended, and its stream is complete."""


class Executor(Protocol):
    """Runs jobs. A context manager: on exit, nothing it started is left running."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def machine(self) -> Machine:
        """The machine that the jobs run on."""
        ...

    def end_leftovers(self, marks: Sequence[Mark]) -> Leftovers:
        """End what killed agents with these marks left running; report what other killed agents left."""
        ...

    def run(self, jobs: Sequence[Job], listener: Listener) -> list[Outcome]:
        """Run these jobs together; returns when all have ended, in the order of `jobs`.

        A job that fails is an outcome, not an exception. AgentLost is raised only if nothing can be run at all.
        """
        ...

    def stop(self) -> None:
        """End the running jobs; they and all later ones get outcomes with `stopped`. A second call skips the grace period.
        May be called from a signal handler or another thread."""
        ...


@runtime_checkable
class Allocating(Protocol):
    """An executor that asks a scheduler for its nodes."""

    def allocate(self, folder: str, listener: Listener) -> tuple[Node, ...]:
        """Get the nodes; CannotMeasure if there are none to be had. `folder`: of the run, which names them from now on.

        Returns the nodes for a plan of several machines, the main one first; empty if there is only one.
        """
        ...

    def others_on(self, job: Job) -> tuple[str, ...]:
        """Jobs of others that the scheduler ran on the node of this one, which has just ended, by their numbers."""
        ...


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a run for its executor. `folder`: the base folder, which jobs write to; None: not known yet.
    `folder_there`: where to put files on machines that do not see that folder; None: below the user's home there.
    `named_system`: reads the system file that the environment names, for the key of a machine that `--on` names.

    For schedulers: how many `nodes` to ask for (0: all there are), for how long to wait for them at most, and options of Slurm's own."""

    folder: str | None = None
    folder_there: str | None = None
    system: System = System()
    named_system: Callable[[], System] = System
    nodes: int = 1
    wait_s: float | None = None
    slurm: tuple[str, ...] = ()

    @classmethod
    def of(cls, options: Options, folder: str) -> Site:
        """As the options of a run say; it asks nothing of a scheduler."""
        return cls(folder=folder, folder_there=options.remote_dir)

    @property
    def digests(self) -> str | None:
        """Where the digests of files that were sent before are kept."""
        return None if self.folder is None else os.path.join(self.folder, "artifacts", "digests")


# What follows the name in `--on NAME:ARGUMENT` ("" if nothing does), and the site. InvalidInput if the argument is wrong.
OpenExecutor = Callable[[str, Site], Executor]


def runs_here(open_executor: OpenExecutor) -> OpenExecutor:
    """Decorates the `open_executor` of one whose jobs run on this machine, with its files, interpreters and clocks.

    The registry's `is_here` answers by it before anything is opened: connecting takes time.
    """
    vars(open_executor)["runs_here"] = True
    return open_executor
