"""`--on slurm[:PARTITION]` and `--on slurm:job=ID`: nodes of a Slurm cluster, in an allocation of ours or in yours."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

import msgspec

from benchwright.core.errors import CannotMeasure, Interrupted, InvalidInput
from benchwright.core.job import Job, Outcome
from benchwright.core.system import Node
from benchwright.executors.agent_process import new_token
from benchwright.executors.allocated import AllocatedExecutor
from benchwright.executors.allocation import Allocation, read_allocations, write_allocations
from benchwright.executors.base import Executor, Listener, Site
from benchwright.executors.connection import Connection
from benchwright.executors.lender import Lender
from benchwright.executors.observer import Observer
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
        if self._held is not None:  # a search for models has asked for nodes before there was a folder
            self._write_down(self._held)
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
        number = self._joined or self._asked()
        watch = JobWatch({number: self._sign}, at_once=self._joined is not None)
        names = hostnames(self._wait(number, watch).nodes)
        if self._held is not None:
            self._write_down(msgspec.structs.replace(self._held, nodes=tuple(names)))
        self._neighbours = Neighbours(number, names, watch.may_ask_at, watch.seen)
        return {name: SlurmConnection(name, number, self._python) for name in names}

    def _asked(self) -> str:
        """The number of a new job."""
        same = (f"--nodelist={','.join(self._same)}",) if self._same else ()
        count = self._site.nodes or count_nodes(self._partition)
        held, self._sign = _submitted(self._site, count, self._partition, same)
        self._write_down(held)
        return held.number

    def _wait(self, number: str, watch: JobWatch) -> JobState:
        """Until the job has its nodes. CannotMeasure if it never will, or not in time."""
        began, limit_s = time.monotonic(), self._site.wait_s
        self._tell("waiting for nodes")
        while not self._stops:
            state = watch.look().get(number)
            if state is not None and state.has_nodes:
                return state
            if state is not None and (problem := _hopeless(number, state)):
                raise CannotMeasure(problem)
            if state is not None:
                self._tell(_waiting(number, state))
            if limit_s is not None and time.monotonic() - began > limit_s:
                raise CannotMeasure(_too_late(number, limit_s))
            time.sleep(_LOOK_S)
        raise Interrupted("interrupted while waiting for nodes")

    def lender(self, folder: str, listener: Listener) -> Lender:
        """See `Lending`."""
        return SlurmLender(self._site, self._partition, folder, listener, self._python)

    def _write_down(self, allocation: Allocation) -> None:
        self._held = allocation
        if self._record is not None and os.path.isdir(self._record):
            write_allocations(self._record, [allocation])

    def _release(self) -> None:
        if self._held is not None and not self._held.released and cancel(self._held.number, self._held.name) is None:
            self._write_down(msgspec.structs.replace(self._held, released=True))
        with suppress(OSError):  # squeue was faster
            os.unlink(self._sign)


class SlurmLender(Lender):
    """A job of one node for each: whichever starts first is used first."""

    def __init__(self, site: Site, partition: str, folder: str, listener: Listener, python: str) -> None:
        self._site, self._partition, self._folder, self._python = site, partition, folder, python
        self._listener = listener
        self._held: dict[str, Allocation] = {}  # by number
        self._signs: dict[str, str] = {}  # of those not granted yet
        self._watch = JobWatch({})
        self._began = time.monotonic()
        self._problem = ""

    def __enter__(self) -> Self:
        try:
            for _ in range(self._site.nodes):
                held, sign = _submitted(self._site, 1, self._partition)
                self._signs[held.number] = sign
                self._write_down(held)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self._watch = JobWatch(self._signs)
        self._tell("waiting for nodes")
        return self

    @property
    def waits(self) -> bool:
        return bool(self._signs)

    def granted(self) -> list[Connection]:
        found: list[Connection] = []
        for number, state in self._watch.look().items():
            if state.has_nodes:
                [name] = hostnames(state.nodes)
                self._write_down(msgspec.structs.replace(self._held[number], nodes=(name,)))
                self._forget(number)
                found.append(SlurmConnection(name, number, self._python))
            elif problem := _hopeless(number, state):
                self._give_up(number, problem)
            else:
                self._tell(_waiting(number, state))
        limit_s = self._site.wait_s
        if limit_s is not None and time.monotonic() - self._began > limit_s:
            for number in list(self._signs):
                self._give_up(number, _too_late(number, limit_s))
        if not self._signs and not any(held.nodes for held in self._held.values()):
            raise CannotMeasure(self._problem)
        return found

    def give_back(self, node: str) -> None:
        for held in self._held.values():
            if held.nodes == (node,):
                self._release(held)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for held in list(self._held.values()):
            self._release(held)
        for number in list(self._signs):
            self._forget(number)

    def _give_up(self, number: str, problem: str) -> None:
        self._problem = problem
        if isinstance(self._listener, Observer):
            self._listener.on_note(problem)
        self._forget(number)
        self._release(self._held[number])

    def _forget(self, number: str) -> None:
        """It is granted, or never will be."""
        self._watch.forget(number)
        with suppress(OSError):  # it was read, or never written
            os.unlink(self._signs.pop(number))
        if not self._signs and isinstance(self._listener, Observer):
            self._listener.on_step_done(SCHEDULER)

    def _release(self, held: Allocation) -> None:
        if not held.released and cancel(held.number, held.name) is None:
            self._write_down(msgspec.structs.replace(held, released=True))

    def _write_down(self, allocation: Allocation) -> None:
        self._held[allocation.number] = allocation
        write_allocations(self._folder, list(self._held.values()))

    def _tell(self, what: str) -> None:
        if isinstance(self._listener, Observer):
            self._listener.on_step(SCHEDULER, what)


def _submitted(site: Site, nodes: int, partition: str, same: tuple[str, ...] = ()) -> tuple[Allocation, str]:
    """A new job, and the file to which its holder will write its nodes."""
    token = new_token()
    sign = os.path.join(site.folder, f".granted-{token}") if site.folder else ""
    name = f"{JOB_NAME}-{token}"
    number = submit(nodes, partition, (*same, *site.slurm), name, sign)
    return Allocation(scheduler=SCHEDULER, number=number, name=name), sign


def _hopeless(number: str, state: JobState) -> str:
    """Why there will be no nodes, if so."""
    if not state.waits:
        return f"slurm: job {number} ended before it could be used ({state.state.lower()})"
    if state.is_hopeless:
        return f"slurm: job {number} would wait for ever ({state.reason}); change --nodes or --slurm"
    return ""


def _waiting(number: str, state: JobState) -> str:
    return f"waiting for nodes: job {number} is {state.state.lower()} ({state.reason or 'no reason given'})"


def _too_late(number: str, limit_s: float) -> str:
    return f"slurm: job {number} got no nodes within {limit_s:g} s; wait longer with --wait"


def end_allocations(folder: str) -> list[str]:
    """Releases the nodes that an earlier attempt at the run in `folder` still holds; returns the numbers of their jobs."""
    found = read_allocations(folder)
    ended = [a for a in found if a.scheduler == SCHEDULER and not a.released and cancel(a.number, a.name) is None]
    if ended:
        write_allocations(folder, [msgspec.structs.replace(a, released=a.released or a in ended) for a in found])
    return [allocation.number for allocation in ended]


def open_executor(argument: str, site: Site) -> Executor:
    """`--on slurm[:PARTITION]`: a new allocation. `--on slurm:job=ID`: one that you have."""
    job = argument.removeprefix(_JOB) if argument.startswith(_JOB) else None
    if job is not None and not job.isdigit():
        raise InvalidInput(f"'{job}' is not the number of a job", where="--on slurm", remedy="write slurm:job=1234")
    if job is not None and (site.slurm or site.nodes > 1):
        raise InvalidInput(
            "that allocation is already made", where="--on slurm:job=ID", remedy="leave --nodes and --slurm out"
        )
    check_programs()
    return SlurmExecutor(site, "" if job is not None else argument, job)
