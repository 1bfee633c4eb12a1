"""Reads a run from its folder: everything is derived again from the plan and the streams."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.core.job import SHELL_LINE
from benchwright.core.machine import Machine
from benchwright.core.note import Note
from benchwright.core.run import Launch, Plan, Run
from benchwright.core.status import Reason
from benchwright.plan.placement import make_plan
from benchwright.record import record_stream
from benchwright.runs.assembly import RunParts, assemble
from benchwright.runs.base import Kinds
from benchwright.runs.checksums import Checksums
from benchwright.runs.run_folder import RunFolder
from benchwright.runs.stored_plan import StoredPlan

_SO_FAR = Note(text="this run is still in progress: these are its results so far")


def read_run(folder: RunFolder, kinds: Kinds) -> Run:
    """The run in `folder`, with all its raw samples; InvalidInput if it is no run folder or cannot be read.

    `kinds` gives the kind of each of its benchmarks.
    """
    try:
        return _read_run(folder, kinds)
    except OSError as error:
        where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(folder.path)
        raise InvalidInput(f"cannot be read: {error.strerror or error}", where=where) from error
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        # Files not checked in full may hold anything; whatever that leads to, other runs must stay readable.
        raise InvalidInput(
            f"its files do not fit together ({type(error).__name__}: {str(error)[:200]})",
            where=str(folder.path),
            remedy="they may have been edited or damaged; start a new run",
        ) from error


def _read_run(folder: RunFolder, kinds: Kinds) -> Run:
    stored = folder.read_plan()
    machine = _machine(folder)
    ending = folder.read_ending()
    unfinished = ending.ended is None and folder.is_being_made()  # checked first: it may end while being read
    plan = _plan(folder, stored, machine, kinds)
    benchmarks = {b.name: b for b in stored.benchmarks}
    launches: dict[str, list[Launch]] = {b.name: [] for b in stored.benchmarks}
    ended = isinstance(ending.ended, str)  # then every job was launched: a missing stream was removed
    checksums = Checksums(folder.path)
    for job in (job for jobs in plan.launches for job in jobs):
        checksum = checksums.of(job.stream)
        if ended or checksum is not None or Path(job.stream).is_file():
            launch = record_stream(job.stream, job, benchmarks[job.benchmark], kinds, checksum)
            launches[job.benchmark].append(launch)
    if unfinished:
        # A stream without an end is not lost: its job still runs.
        launches = {name: [x for x in found if x.reason is not Reason.AGENT_LOST] for name, found in launches.items()}
    parts = RunParts(
        folder=folder.path,
        stored=stored,
        machine=machine,
        plan=plan,
        launches=launches,
        history=folder.read_history(),
        packages=folder.read_packages(),
        notes=(*notes_of(ending.notes), *((_SO_FAR,) if unfinished else ())),
        ended=ending.ended if ended else None,
    )
    return assemble(parts, kinds)


def _machine(folder: RunFolder) -> Machine:
    machine = folder.read_machine()
    if machine is None:
        raise InvalidInput(
            "there is no readable machine.json", where=str(folder.path), remedy="was it deleted by hand?"
        )
    return machine


def plan_of(folder: RunFolder, kinds: Kinds) -> Plan:
    """The plan of the run in `folder`, for reading: jobs hold only what a reader needs."""
    return _plan(folder, folder.read_plan(), _machine(folder), kinds)


def commands_of(run: Run, kinds: Kinds) -> dict[str, tuple[str, ...]]:
    """The command of each benchmark's first process, if its kind fills in words; empty without a plan. See `words_by_job`."""
    return {benchmark: words for benchmark, _, words in reversed(list(_started(run, kinds)))}


def words_by_job(run: Run, kinds: Kinds) -> dict[str, tuple[str, ...]]:
    """The command of each process of benchmarks whose kind fills in words. What a shell ran is `/bin/sh -c TEXT`."""
    return {job: words for _, job, words in _started(run, kinds)}


def _started(run: Run, kinds: Kinds) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Benchmark, job and words."""
    if not (filled := {r.benchmark.name for r in run.results if kinds(r.benchmark).fills_words}):
        return
    folder = RunFolder(Path(run.folder))
    try:
        launches = stored.launches if (stored := folder.read_jobs()) is not None else plan_of(folder, kinds).launches
    except InvalidInput:
        return
    for job in (job for jobs in launches for job in jobs if job.benchmark in filled):
        if job.shell:
            yield job.benchmark, job.id, (*SHELL_LINE, " ".join(job.argv))
        elif job.argv[:1] != SHELL_LINE[:1] or len(job.argv) != 2:
            yield job.benchmark, job.id, job.argv
        else:  # written for the job, in the run's folder, which may have been moved
            with suppress(OSError, UnicodeError):  # one that held a secret has removed itself
                steps = folder.path / "files" / job.argv[1].rpartition("/files/")[2]
                yield job.benchmark, job.id, (*SHELL_LINE, steps.read_text("utf-8"))


def _plan(folder: RunFolder, stored: StoredPlan, machine: Machine, kinds: Kinds) -> Plan:
    """As stored; planned again for a run of an earlier version or with a damaged jobs.json."""
    if (jobs := folder.read_jobs()) is not None:
        return jobs.plan(stored.benchmarks, str(folder.path))
    plan = make_plan(
        stored.benchmarks,
        machine,
        stored.options,
        kinds,
        folder=str(folder.path),
        probe_path=None,
        usable_cores=range(1 << 16),  # the reading machine need not have these cores
        not_ready=stored.not_ready,
    )
    if not stored.options.up_to:
        return plan
    made = tuple(jobs for jobs in plan.launches if any(Path(job.stream).is_file() for job in jobs))
    return msgspec.structs.replace(plan, launches=made)  # the others were planned in case they were needed


def notes_of(said: object) -> tuple[Note, ...]:
    """The notes in run.json, which may have been edited by hand: anything else is left out."""
    notes = []
    for found in said if isinstance(said, list) else ():
        with suppress(msgspec.ValidationError):
            notes.append(msgspec.convert(found, Note))
    return tuple(notes)
