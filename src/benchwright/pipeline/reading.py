"""A run read back from its folder: everything is derived again from the plan and the streams."""

from __future__ import annotations

from pathlib import Path

from benchwright.domain.errors import InvalidInput
from benchwright.domain.run import Launch, Note, Run
from benchwright.pipeline.assembly import result_of, status_of
from benchwright.planning.placement import make_plan
from benchwright.recorder import record_stream
from benchwright.stores.run_folder import RunFolder


def read_run(folder: RunFolder) -> Run:
    """The run in `folder`, with all its raw samples; InvalidInput if it is no run folder or cannot be read."""
    stored = folder.read_plan()
    machine = folder.read_machine()
    if machine is None:
        raise InvalidInput(
            "there is no readable machine.json", where=str(folder.path), remedy="was it deleted by hand?"
        )
    plan = make_plan(
        stored.benchmarks,
        machine,
        stored.settings,
        folder=str(folder.path),
        probe_path=None,
        usable_cores=range(1 << 16),  # cores need not exist on the machine that reads
    )
    benchmarks = {b.name: b for b in stored.benchmarks}
    launches: dict[str, list[Launch]] = {b.name: [] for b in stored.benchmarks}
    for jobs in plan.launches:
        for job in jobs:
            if Path(job.stream).exists():
                launches[job.benchmark].append(record_stream(job.stream, job, benchmarks[job.benchmark]))
    results = tuple(result_of(b, plan, launches[b.name]) for b in stored.benchmarks)
    body = folder.read_run() or {}
    return Run(
        id=folder.id,
        name=stored.name,
        started=stored.started,
        ended=body.get("ended"),
        folder=str(folder.path),
        status=status_of([r.status for r in results]),
        machine=machine,
        results=results,
        labels=stored.labels,
        notes=tuple(Note(**note) for note in body.get("notes", ())),
        workers=stored.settings.workers,
        packages=folder.read_packages(),
    )
