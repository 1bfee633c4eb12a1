"""Several runs as one, as milabench's report reads several folders: a benchmark has the processes of all of them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec.structs import replace

from benchwright.core.launches import worst_overlap
from benchwright.core.note import Note
from benchwright.core.run import Result, Run
from benchwright.core.status import Status
from benchwright.runs.assembly import status_of


def pooled_run(runs: Sequence[Run]) -> Run:
    """At least one run; one that is given twice counts once. What the last run says of a benchmark holds."""
    distinct = list({run.unique_id: run for run in runs}.values())
    if len(distinct) == 1:
        return distinct[0]
    results: dict[str, list[Result]] = {}
    begin = 0  # the launches of a run come after those of the runs before it
    for run in distinct:
        for result in run.results:
            launches = tuple(replace(x, position=begin + x.position) for x in result.launches)
            results.setdefault(result.benchmark.name, []).append(replace(result, launches=launches))
        begin += 1 + max((x.position for r in run.results for x in r.launches), default=-1)
    pooled = tuple(_pooled(same) for same in results.values())
    ends = [run.ended for run in distinct]
    return Run(
        id=" + ".join(run.id for run in distinct),
        name=" + ".join(run.name for run in distinct),
        started=min(run.started for run in distinct),
        ended=max((end for end in ends if end), default=None) if all(ends) else None,
        folder=", ".join(run.folder for run in distinct),
        status=status_of([result.status for result in pooled]),
        machine=distinct[-1].machine,
        results=pooled,
        labels=dict(set.intersection(*(set(run.labels.items()) for run in distinct))),
        notes=tuple(_notes(distinct)),
    )


def _pooled(results: Sequence[Result]) -> Result:
    launches = tuple(x for result in results for x in result.launches)
    order = (Status.FAILED, Status.INTERRUPTED, Status.PENDING, Status.OK, Status.SKIPPED)
    worst = min(results, key=lambda result: order.index(result.status))
    checks = tuple(dict.fromkeys(check for result in results for check in result.checks))
    benchmark, overlap = results[-1].benchmark, worst_overlap(launches)
    return replace(worst, benchmark=benchmark, launches=launches, overlap=overlap, checks=checks)


def _notes(runs: Sequence[Run]) -> list[Note]:
    found = list(dict.fromkeys(note for run in runs for note in run.notes))
    found.append(
        Note(
            text=f"{len(runs)} runs pooled as milabench does: {', '.join(os.path.basename(run.folder) for run in runs)}"
        )
    )
    if len({run.machine.fingerprint for run in runs if run.machine.known}) > 1:
        found.append(Note(text="the pooled runs are from different machines"))
    return found
