"""`--on slurm[:PARTITION]` and `--on slurm:job=ID`: nodes of a Slurm cluster, in an allocation of ours or in yours."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Self

import msgspec

from benchwright.core.errors import CannotMeasure, Interrupted, InvalidInput
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
    count_nodes_of_job,
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
        self._lender: SlurmLender | None = None
        self._record: str | None = None  # the folder of the run
        self._same: tuple[str, ...] = ()  # nodes of an earlier attempt: a run is measured on one set of machines

    def allocate(self, folder: str, listener: Listener) -> tuple[Node, ...]:
        """The run in `folder` names its nodes from now on. Those of an earlier attempt are released, and asked for again."""
        self._record = folder
        self._same = next((a.nodes for a in read_allocations(folder) if a.scheduler == SCHEDULER), ())
        end_allocations(folder)
        if self._lender is not None:  # a search for models has asked for nodes before there was a folder
            self._lender.name_in(folder)
        return super().allocate(folder, listener)

    def _jobs_of_others(self) -> Mapping[str, tuple[str, ...]]:
        return {} if self._lender is None else self._lender.jobs_of_others()

    def _grant(self) -> dict[str, Connection]:
        observer = self._listener if isinstance(self._listener, Observer) else Observer()
        count = self._site.nodes or (0 if self._joined else count_nodes(self._partition))
        self._lender = self._lender_of([count], self._record, observer)
        self._lender.__enter__()
        while not self._stops:
            if found := self._lender.granted():
                return {connection.node.name: connection for connection in found}
            time.sleep(_LOOK_S)
        raise Interrupted("interrupted while waiting for nodes")

    def lends(self) -> int:
        """Of a job that was joined: all of its nodes, unless fewer were asked for."""
        return count_nodes_of_job(self._joined) if self._joined and not self._site.nodes else self._site.nodes

    def lender(self, folder: str, observer: Observer) -> Lender:
        """See `Lending`."""
        return self._lender_of([1] * self._site.nodes, folder, observer)

    def _lender_of(self, sizes: Sequence[int], folder: str | None, observer: Observer) -> SlurmLender:
        same = (f"--nodelist={','.join(self._same)}",) if self._same else ()
        site = msgspec.structs.replace(self._site, slurm=(*same, *self._site.slurm))
        return SlurmLender(site, self._partition, self._joined, sizes, folder, observer, self._python)

    def _release(self) -> None:
        if self._lender is not None:
            self._lender.__exit__()


class SlurmLender(Lender):
    """A job for each of `sizes`, with so many nodes: whichever starts first is used first. `joined`: instead the nodes of that
    job, which is not ours to end. `folder`: names the jobs; None: there is none yet."""

    def __init__(
        self,
        site: Site,
        partition: str,
        joined: str | None,
        sizes: Sequence[int],
        folder: str | None,
        observer: Observer,
        python: str,
    ) -> None:
        self._site, self._partition, self._joined, self._sizes = site, partition, joined, sizes
        self._folder, self._observer, self._python = folder, observer, python
        self._held: dict[str, Allocation] = {}  # by number
        self._signs: dict[str, str] = {}  # of those not granted yet
        self._watch = JobWatch({})
        self._neighbours: Neighbours | None = None
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        if self._joined is not None:
            self._signs[self._joined] = ""
            self._write_down(Allocation(scheduler=SCHEDULER, number=self._joined, name="", released=True))
        try:
            for size in () if self._joined is not None else self._sizes:
                token, folder = new_token(), self._site.folder
                sign, name = os.path.join(folder, f".granted-{token}") if folder else "", f"{JOB_NAME}-{token}"
                number = submit(size, self._partition, self._site.slurm, name, sign)
                self._signs[number] = sign
                self._write_down(Allocation(scheduler=SCHEDULER, number=number, name=name))
        except BaseException:
            self.__exit__()
            raise
        self._watch = JobWatch(self._signs, at_once=self._joined is not None)
        self._observer.on_step(SCHEDULER, "waiting for nodes")
        return self

    @property
    def waits(self) -> bool:
        return bool(self._signs)

    def granted(self) -> list[Connection]:
        found: list[Connection] = []
        for number, state in self._watch.look().items():
            if state.has_nodes:
                names = self._names(number, state)
                self._write_down(msgspec.structs.replace(self._held[number], nodes=tuple(names)))
                self._forget(number)
                found += [SlurmConnection(name, number, self._python) for name in names]
            elif problem := _hopeless(number, state):
                self._give_up(number, problem)
            else:
                why = state.reason or "no reason given"
                self._observer.on_step(SCHEDULER, f"waiting for nodes: job {number} is {state.state.lower()} ({why})")
        limit_s = self._site.wait_s
        if limit_s is not None and time.monotonic() - self._began > limit_s:
            for number in list(self._signs):
                self._give_up(number, f"slurm: job {number} got no nodes within {limit_s:g} s; wait longer with --wait")
        self.jobs_of_others()
        return found

    def _names(self, number: str, state: JobState) -> list[str]:
        """Of its nodes; of a job that was joined as many as were asked for."""
        names = hostnames(state.nodes)
        if self._joined is None or not self._site.nodes:
            return names
        if len(names) < self._site.nodes:
            raise CannotMeasure(f"slurm: job {number} has {len(names)} nodes, and --nodes asks for {self._site.nodes}")
        return names[: self._site.nodes]

    def jobs_of_others(self) -> dict[str, tuple[str, ...]]:
        """By node; not known while nodes are waited for, since the controller is asked one thing at a time."""
        if self._signs:
            return {}
        if self._neighbours is None:
            names = [name for held in self._held.values() for name in held.nodes]
            self._neighbours = Neighbours(self._held, names, self._watch.may_ask_at, self._watch.seen)
        seen = self._neighbours.look()
        for held in list(self._held.values()):
            others = {name: seen[name] for name in held.nodes if name in seen}
            if others != held.others:
                self._write_down(msgspec.structs.replace(held, others=others))
        return seen

    def give_back(self, node: str) -> None:
        for held in list(self._held.values()):
            if held.nodes == (node,):
                self._release(held)

    def __exit__(self, *error: object) -> None:
        for held in list(self._held.values()):
            self._release(held)
        for number in list(self._signs):
            self._forget(number)

    def _give_up(self, number: str, problem: str) -> None:
        self._forget(number)
        self._release(self._held[number])
        if not self._signs and not any(held.nodes for held in self._held.values()):
            raise CannotMeasure(problem)
        self._observer.on_note(problem)

    def _forget(self, number: str) -> None:
        """It is granted, or never will be."""
        self._watch.forget(number)
        with suppress(OSError):  # it was read, or never written
            os.unlink(self._signs.pop(number))
        if not self._signs:
            self._observer.on_step_done(SCHEDULER)

    def _release(self, held: Allocation) -> None:
        if not held.released and cancel(held.number, held.name) is None:
            self._write_down(msgspec.structs.replace(held, released=True))

    def _write_down(self, allocation: Allocation) -> None:
        self._held[allocation.number] = allocation
        if self._folder is not None and os.path.isdir(self._folder):
            write_allocations(self._folder, list(self._held.values()))

    def name_in(self, folder: str) -> None:
        """From now on."""
        self._folder = folder
        write_allocations(folder, list(self._held.values()))


def _hopeless(number: str, state: JobState) -> str:
    """Why there will be no nodes, if so."""
    if not state.waits:
        return f"slurm: job {number} ended before it could be used ({state.state.lower()})"
    if state.is_hopeless:
        return f"slurm: job {number} would wait for ever ({state.reason}); change --nodes or --slurm"
    return ""


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
    if job is not None and site.slurm:
        raise InvalidInput("that allocation is already made", where="--on slurm:job=ID", remedy="leave --slurm out")
    check_programs()
    return SlurmExecutor(site, "" if job is not None else argument, job)
