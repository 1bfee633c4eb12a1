"""The observer of a run and of any other work that takes a while, and the cores that a run may use."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from benchwright.agent.processes.kernel import read_text
from benchwright.core.benchmark import Benchmark
from benchwright.core.job import Job
from benchwright.core.machine import Machine
from benchwright.core.model import ScriptDiscovery
from benchwright.core.run import Launch, Plan
from benchwright.executors.base import Listener


class Observer(Listener):
    """Notified while a run is made; override the methods of interest."""

    def on_discovery(self, number: int, total: int, script: Benchmark) -> None:
        """A script is about to be run to find its models."""

    def on_discovered(self, script: Benchmark, found: ScriptDiscovery) -> None:
        """It ended, with these models."""

    def on_run(self, folder: Path, plan: Plan, machine: Machine) -> None:
        """The run's folder exists and its plan is made."""

    def on_grown(self, plan: Plan, left: int, total: int) -> None:
        """The plan as far as it is known; `left` of `total` scripts are still to be searched for models."""

    def on_launch(self, number: int, total: int, jobs: Sequence[Job]) -> None:
        """A launch is about to start."""

    def on_recorded(self, number: int, total: int, launches: Sequence[Launch]) -> None:
        """A launch ended and was recorded."""

    def on_trouble(self, text: str) -> None:
        """Something went wrong that does not stop the run."""

    # Whatever else takes a while: installs, downloads, reading many files. Called from any thread.

    def on_step(self, name: str, what: str, log: str | None = None) -> None:
        """`name` began something. The last line of the file `log` says how far it is."""

    def on_step_now(self, name: str, what: str) -> None:
        """How far `name` is, often: for whoever can redraw it."""

    def on_step_done(self, name: str, how: str = "") -> None:
        """The steps of `name` are done; `how`: what to say about it, if anything."""

    def on_note(self, text: str) -> None:
        """Something a user should know."""


def usable_cores(machine: Machine) -> list[int]:
    """Cores this process may run on, the threads of one core side by side; of another machine, all it reported."""
    if is_this_machine(machine) and hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0), key=lambda core: (_first_thread(core), core))
    return list(range(machine.cores or os.cpu_count() or 1))


def _first_thread(core: int) -> int:
    """The number of the first thread of the same physical core."""
    siblings = read_text(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
    first = re.match(r"\d+", siblings or "")
    return int(first.group()) if first else core


def is_this_machine(machine: Machine) -> bool:
    """Whether this process sees its load and its cores."""
    here = os.uname()
    return (machine.hostname, machine.system, machine.kernel) == (here.nodename, here.sysname, here.release)
