"""A run read back from its folder: everything is derived again from the plan and the streams."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from benchwright.domain.errors import InvalidInput
from benchwright.domain.machine import Machine
from benchwright.domain.run import Launch, Note, Plan, Run
from benchwright.domain.status import Reason
from benchwright.pipeline.assembly import held_against_peaks, result_of, status_of
from benchwright.planning.placement import make_plan
from benchwright.recorder import record_stream
from benchwright.stores.run_folder import RunFolder, StoredPlan

_SO_FAR = Note(text="this run is still being made: these are its results so far")


def read_run(folder: RunFolder) -> Run:
    """The run in `folder`, with all its raw samples; InvalidInput if it is no run folder or cannot be read."""
    stored = folder.read_plan()
    machine = folder.read_machine()
    if machine is None:
        raise InvalidInput(
            "there is no readable machine.json", where=str(folder.path), remedy="was it deleted by hand?"
        )
    body = folder.read_run() or {}
    unfinished = body.get("ended") is None and folder.is_being_made()  # asked first: it may end while it is read
    plan = _plan(folder, stored, machine)
    benchmarks = {b.name: b for b in stored.benchmarks}
    launches: dict[str, list[Launch]] = {b.name: [] for b in stored.benchmarks}
    for jobs in plan.launches:
        for job in jobs:
            if Path(job.stream).is_file():
                launches[job.benchmark].append(record_stream(job.stream, job, benchmarks[job.benchmark]))
    if unfinished:
        # What has no end yet is not lost: it still runs.
        launches = {name: [x for x in found if x.reason is not Reason.AGENT_LOST] for name, found in launches.items()}
    packages = folder.read_packages()
    results = held_against_peaks(
        [
            result_of(
                b,
                plan,
                launches[b.name],
                validations=stored.settings.validations,
                machine=machine,
                packages=packages,
                workers=stored.settings.workers,
            )
            for b in stored.benchmarks
        ]
    )
    return Run(
        id=folder.id,
        name=stored.name_of(folder.id),
        started=stored.started,
        ended=body["ended"] if isinstance(body.get("ended"), str) else None,
        folder=str(folder.path),
        status=status_of([r.status for r in results]),
        machine=machine,
        results=results,
        labels=stored.labels,
        notes=(*_notes(body), *((_SO_FAR,) if unfinished else ())),
        workers=stored.settings.workers,
        packages=packages,
    )


def plan_of(folder: RunFolder) -> Plan:
    """The plan the run in `folder` was made by."""
    machine = folder.read_machine()
    if machine is None:
        raise InvalidInput(
            "there is no readable machine.json", where=str(folder.path), remedy="was it deleted by hand?"
        )
    return _plan(folder, folder.read_plan(), machine)


def commands_of(run: Run) -> dict[str, tuple[str, ...]]:
    """What the first process of each suite's benchmark is called with; nothing where the plan is not there any more."""
    if all(r.benchmark.pack is None for r in run.results):
        return {}
    try:
        plan = plan_of(RunFolder(Path(run.folder)))
    except InvalidInput:
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for jobs in plan.launches:
        for job in jobs:
            found.setdefault(job.benchmark, job.argv)
    return found


def _plan(folder: RunFolder, stored: StoredPlan, machine: Machine) -> Plan:
    return make_plan(
        stored.benchmarks,
        machine,
        stored.settings,
        folder=str(folder.path),
        probe_path=None,
        usable_cores=range(1 << 16),  # cores need not exist on the machine that reads
        not_ready=stored.not_ready,
    )


def _notes(body: Mapping[str, Any]) -> list[Note]:
    """Of run.json, which may have been edited by hand: what is no note is left out."""
    notes = []
    for found in body["notes"] if isinstance(body.get("notes"), list) else ():
        with suppress(msgspec.ValidationError):
            notes.append(msgspec.convert(found, Note))
    return notes
