"""`--on slurm[:PARTITION]` and `--on slurm:job=ID`: nodes of a Slurm cluster, in an allocation of ours or in yours."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from benchwright.core.errors import CannotMeasure, Interrupted, InvalidInput
from benchwright.core.job import Job, Outcome
from benchwright.core.system import Node
from benchwright.executors.agent_process import new_token
from benchwright.executors.allocated import AllocatedExecutor
from benchwright.executors.allocation import Allocation, read_allocations, write_allocations
from benchwright.executors.base import Executor, Listener, Site
from benchwright.executors.connection import Connection
from benchwright.executors.slurm_commands import (
    JOB_NAME,
    JobState,
    JobWatch,
    Neighbours,
    cancel,
    check_programs,
    count_nodes,
    hostnames,
    submit,
)
from benchwright.executors.slurm_connection import SlurmConnection

SCHEDULER = "slurm"
_LOOK_S = 0.2
_JOB = "job="


class SlurmExecutor(AllocatedExecutor):
    """`job`: join that allocation, instead of asking for one."""

    scheduler = SCHEDULER

    def __init__(self, site: Site, partition: str = "", job: str | None = None) -> None:
        super().__init__(site)
        self._partition = partition
        self._joined = job
        self._held: Allocation | None = None
        self._record: str | None = None  # the folder of the run
        self._sign = ""  # the file to which the holder writes its nodes
        self._neighbours: Neighbours | None = None
        self._others: list[dict[str, tuple[str, ...]]] = [{}]
        self._same: tuple[str, ...] = ()  # nodes of an earlier attempt: a run is measured on one set of machines

    def allocate(self, folder: str, listener: Listener) -> tuple[Node, ...]:
        """The run in `folder` names its nodes from now on. Those of an earlier attempt are released, and asked for again."""
        self._record = folder
        self._same = next((a.nodes for a in read_allocations(folder) if a.scheduler == SCHEDULER), ())
        end_allocations(folder)
        return super().allocate(folder, listener)

    def run(self, jobs: Sequence[Job], listener: Listener) -> list[Outcome]:
        self._look_around()
        outcomes = super().run(jobs, listener)
        self._look_around()
        return outcomes

    def _look_around(self) -> None:
        """Who else was on the nodes when the last launch began or ended."""
        if self._neighbours is not None:
            self._others = [self._others[-1], self._neighbours.look()]

    def others_on(self, job: Job) -> tuple[str, ...]:
        """See `Allocating`."""
        return tuple(dict.fromkeys(other for seen in self._others for other in seen.get(self._node_of(job), ())))

    def _grant(self) -> dict[str, Connection]:
        watch = self._asked()
        names = hostnames(self._wait(watch).nodes)
        if self._held is not None:
            self._write_down(msgspec.structs.replace(self._held, nodes=tuple(names)))
        self._neighbours = Neighbours(watch.number, names, watch.may_ask_at, watch.seen)
        return {name: SlurmConnection(name, watch.number, self._python) for name in names}

    def _asked(self) -> JobWatch:
        """The job to wait for."""
        if self._joined is not None:
            return JobWatch(self._joined)
        token = new_token()
        self._sign = os.path.join(self._site.folder, f".granted-{token}") if self._site.folder else ""
        name = f"{JOB_NAME}-{token}"
        same = (f"--nodelist={','.join(self._same)}",) if self._same else ()
        count = self._site.nodes or count_nodes(self._partition)
        number = submit(count, self._partition, (*same, *self._site.slurm), name, self._sign)
        self._write_down(Allocation(scheduler=SCHEDULER, number=number, name=name))
        return JobWatch(number, self._sign)

    def _wait(self, watch: JobWatch) -> JobState:
        """Until the job has its nodes. CannotMeasure if it never will, or not in time."""
        what = f"job {watch.number}"
        began, limit_s = time.monotonic(), self._site.wait_s
        self._tell("waiting for nodes")
        while not self._stops:
            state = watch.look()
            if state is not None and state.has_nodes:
                return state
            if state is not None and not state.waits:
                raise CannotMeasure(f"slurm: {what} ended before it could be used ({state.state.lower()})")
            if state is not None and state.is_hopeless:
                raise CannotMeasure(f"slurm: {what} would wait for ever ({state.reason}); change --nodes or --slurm")
            if state is not None:
                self._tell(f"waiting for nodes: {what} is {state.state.lower()} ({state.reason or 'no reason given'})")
            if limit_s is not None and time.monotonic() - began > limit_s:
                raise CannotMeasure(f"slurm: {what} got no nodes within {limit_s:g} s; wait longer with --wait")
            time.sleep(_LOOK_S)
        raise Interrupted("interrupted while waiting for nodes")

    def _write_down(self, allocation: Allocation) -> None:
        self._held = allocation
        if self._record is not None and os.path.isdir(self._record):
            write_allocations(self._record, [allocation])

    def _release(self) -> None:
        if self._held is not None and not self._held.released and cancel(self._held.number, self._held.name) is None:
            self._write_down(msgspec.structs.replace(self._held, released=True))
        with suppress(OSError):  # squeue was faster
            os.unlink(self._sign)


def end_allocations(folder: str) -> list[str]:
    """Releases the nodes that an earlier attempt at the run in `folder` still holds; returns the numbers of their jobs."""
    found = read_allocations(folder)
    ended = [a for a in found if a.scheduler == SCHEDULER and not a.released and cancel(a.number, a.name) is None]
    if ended:
        write_allocations(folder, [msgspec.structs.replace(a, released=a.released or a in ended) for a in found])
    return [allocation.number for allocation in ended]


def open_executor(argument: str, site: Site) -> Executor:
    """`--on slurm[:PARTITION]`: an allocation of its own. `--on slurm:job=ID`: one that you have."""
    job = argument.removeprefix(_JOB) if argument.startswith(_JOB) else None
    if job is not None and not job.isdigit():
        raise InvalidInput(f"'{job}' is not the number of a job", where="--on slurm", remedy="write slurm:job=1234")
    if job is not None and (site.slurm or site.nodes > 1):
        raise InvalidInput(
            "that allocation is already made", where="--on slurm:job=ID", remedy="leave --nodes and --slurm out"
        )
    check_programs()
    return SlurmExecutor(site, "" if job is not None else argument, job)
