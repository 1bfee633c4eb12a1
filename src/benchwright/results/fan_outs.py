"""Runs of several nodes that share one target, as one: every result with the node that measured it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from benchwright.core.note import Note
from benchwright.core.run import Result, Run
from benchwright.kinds.registry import kind_of
from benchwright.report.base import Report
from benchwright.results.after_run import log_tails, report_of
from benchwright.runs.assembly import status_of
from benchwright.runs.fan_out_folder import FAN_OUT, NODE, MeasuredPart, fan_outs, read_parts
from benchwright.runs.read_run import read_run
from benchwright.runs.run_folder import RunFolder


def runs_of(folder: Path) -> list[Run]:
    """Of the fan-out in `folder`, one for each node and attempt, in the order of their ends."""
    runs = folder.parent.parent
    names = dict.fromkeys(part.run for part in read_parts(folder))
    return [read_run(RunFolder(runs / name), kind_of) for name in names if (runs / name / "plan.json").exists()]


def fan_out_folder(run: Run) -> Path | None:
    """Of the fan-out that the run is part of."""
    folder = fan_outs(Path(run.folder).parent) / run.labels.get(FAN_OUT, "")
    return folder if FAN_OUT in run.labels and folder.is_dir() else None


def joint_run(runs: Sequence[Run], parts: Sequence[MeasuredPart]) -> Run:
    """Of each part what its last node measured, under a name that says which node that was."""
    by_id = {run.id: run for run in runs}
    results: list[Result] = []
    counts: dict[str, int] = {}
    for part in parts:
        if part.run in by_id:
            found = [r for r in by_id[part.run].results if r.benchmark.name in part.results]
            results += [_named(result, part.node) for result in found]
            counts[part.node] = counts.get(part.node, 0) + len(found)
    machines = {run.machine.fingerprint for run in runs}
    notes = [_where(counts)]
    if len(machines) > 1:
        text = "the nodes are not alike, so their numbers should not be compared with each other"
        notes.append(Note(text=text))
    first, ends = runs[0], [run.ended for run in runs]
    return Run(
        id=first.labels[FAN_OUT],
        name=first.name,
        started=min(run.started for run in runs),
        ended=max((end for end in ends if end), default=None) if all(ends) else None,
        folder=", ".join(run.folder for run in runs),
        status=status_of([result.status for result in results]),
        machine=first.machine,
        results=tuple(results),
        labels={key: value for key, value in first.labels.items() if key != NODE},
        notes=tuple(dict.fromkeys([*notes, *(note for run in runs for note in run.notes)])),
        workers=first.workers,
        packages=first.packages,
        revisions=first.revisions,
    )


def joint_report(folder: Path, runs: Sequence[Run], *, width: int) -> Report:
    """One report over all `runs` of the fan-out in `folder`."""
    report = report_of(joint_run(runs, read_parts(folder)), width=width)
    tails: Mapping[str, Sequence[str]] = {job: lines for run in runs for job, lines in log_tails(run).items()}
    return replace(report, log_tails=tails)


def _named(result: Result, node: str) -> Result:
    benchmark = result.benchmark
    named = replace(benchmark, name=f"{benchmark.name} on {node}", labels=benchmark.labels | {NODE: node})
    return replace(result, benchmark=named)


def _where(counts: Mapping[str, int]) -> Note:
    words = ", ".join(f"{node} {count}" for node, count in sorted(counts.items()))
    nodes = "one node" if len(counts) == 1 else f"{len(counts)} nodes"
    return Note(text=f"{sum(counts.values())} results from {nodes}: {words}", severity="info")
