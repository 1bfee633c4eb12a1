"""A run's results, from what was planned and what was recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from benchwright.analysis.checks.validation import Circumstances, check
from benchwright.analysis.efficiency import peaks_of, with_peak_checked
from benchwright.core.benchmark import Benchmark
from benchwright.core.machine import Machine
from benchwright.core.note import Note
from benchwright.core.results.launches import only_whole, worst_overlap
from benchwright.core.results.provenance import History
from benchwright.core.run import CheckStatus, Launch, Plan, Result, Run, culprit
from benchwright.core.status import Reason, Status
from benchwright.runs.base import Kinds
from benchwright.runs.mixed_versions import marked_mixed, mixed_notes
from benchwright.runs.stored_plan import StoredPlan

_WARN_BELOW = 0.90  # of the time together; the check `planning` wants more


class RunParts(msgspec.Struct, frozen=True, kw_only=True):
    """All that a Run is made of: as its folder holds it, or as it is known while it is being made."""

    folder: Path
    stored: StoredPlan  # without secrets
    machine: Machine
    plan: Plan  # as it is stored
    launches: Mapping[str, Sequence[Launch]]  # by benchmark: those that were recorded so far, in their order
    history: History | None = None
    packages: dict[str, dict[str, str]] = {}
    notes: tuple[Note, ...] = ()
    ended: str | None = None


def assemble(parts: RunParts, kinds: Kinds) -> Run:
    """The run of its parts. Nothing else makes one, except what reads it whole from a file or the store."""
    settings = parts.stored.settings
    results = checked_against_peaks(
        [
            result_of(
                benchmark,
                parts.plan,
                parts.launches.get(benchmark.name, ()),
                validations=settings.validations,
                machine=parts.machine,
                packages=parts.packages,
                workers=settings.workers,
                promises_rate=kinds(benchmark).promises_rate,
            )
            for benchmark in parts.stored.benchmarks
        ]
    )
    return Run(
        id=parts.folder.name,
        uid=parts.stored.uid,
        name=parts.stored.name_of(parts.folder.name),
        started=parts.stored.started,
        ended=parts.ended,
        folder=str(parts.folder),
        status=status_of([r.status for r in results]),
        machine=parts.machine,
        results=marked_mixed(results, parts.history),
        labels=parts.stored.labels,
        notes=tuple(dict.fromkeys((*mixed_notes(parts.history), *parts.notes))),
        workers=settings.workers,
        packages=parts.packages,
    )


def result_of(
    benchmark: Benchmark,
    plan: Plan,
    launches: Sequence[Launch],
    *,
    validations: Sequence[str] = (),
    machine: Machine | None = None,
    packages: Mapping[str, Mapping[str, str]] | None = None,
    workers: int | None = None,
    promises_rate: bool = False,
) -> Result:
    """`launches`: those that were recorded so far. The first failed one gives the result its reason; if all ended well, a
    check that does not pass does. `validations`: the layers asked for beside those that always run. `promises_rate`: a result
    without a rate has failed."""
    if said := plan.notes.get(benchmark.name):
        benchmark = replace(benchmark, notes=tuple(dict.fromkeys((*benchmark.notes, *said))))
    if benchmark.name in plan.skipped:
        reason, detail = plan.skipped[benchmark.name]
        # What the machine lacks is no failure; what nobody installed or prepared, or described wrongly, is.
        status = Status.FAILED if reason in (Reason.NOT_READY, Reason.MISCONFIGURED) else Status.SKIPPED
        return Result(benchmark=benchmark, status=status, reason=reason, detail=detail)
    planned = tuple(jobs for jobs in plan.launches if jobs[0].benchmark == benchmark.name)
    jobs = {together[0].position: len(together) for together in planned}
    result = _judged(benchmark, sum(map(len, planned)), only_whole(launches, jobs))
    if "planning" not in validations:  # which says it itself
        result = _overlap_noted(result)
    known = Circumstances(
        planned=planned, machine=machine, packages=packages or {}, workers=workers, promises_rate=promises_rate
    )
    return checked(replace(result, checks=check(result, validations, known)))


def _overlap_noted(result: Result) -> Result:
    """The result, with a warning if its processes were measured apart for so long that their figures tell of another load."""
    if result.overlap is None or result.overlap >= _WARN_BELOW:
        return result
    text = f"its processes were measured together for only {result.overlap * 100:.1f} % of the time; otherwise the load was lighter"
    return replace(result, benchmark=replace(result.benchmark, notes=(*result.benchmark.notes, text)))


def checked_against_peaks(results: Sequence[Result]) -> tuple[Result, ...]:
    """The results of a run; one that says to have done more arithmetic than the machine can, as measured in the same run, fails."""
    peaks = peaks_of(results)
    if not peaks:
        return tuple(results)
    return tuple(checked(replace(r, checks=with_peak_checked(r, peaks))) for r in results)


def checked(result: Result) -> Result:
    """The result with what its checks say of it: a failed one fails a benchmark that ended well."""
    bad = next((c for c in result.checks if c.status is CheckStatus.FAILED), None)
    if bad is None or result.status is not Status.OK:
        return result
    nothing = bad.layer == "ensure_rate" and not any(m.metric == "rate" for x in result.counted for m in x.measurements)
    reason = Reason.NO_DATA if nothing else Reason.INVALID
    return replace(result, status=Status.FAILED, reason=reason, detail=bad.explanation)


def _judged(benchmark: Benchmark, planned: int, recorded: tuple[Launch, ...]) -> Result:
    """By how the launches ended alone."""
    measured = [x for x in recorded if not x.warmup]
    bad = culprit(measured)
    if bad is None and len(recorded) < planned:
        status = Status.INTERRUPTED if recorded else Status.PENDING
        return Result(benchmark=benchmark, status=status, launches=recorded)
    bad = bad or next((x for x in measured if x.status is not Status.OK), None)
    if bad is None:
        return Result(benchmark=benchmark, status=Status.OK, launches=recorded, overlap=worst_overlap(recorded))
    several = sum(1 for x in recorded if x.position == bad.position) > 1
    detail = f"{bad.job}: {bad.detail}" if several and bad.detail else bad.detail
    return Result(benchmark=benchmark, status=bad.status, reason=bad.reason, detail=detail, launches=recorded)


def status_of(statuses: Sequence[Status]) -> Status:
    """The run's own status, from those of its benchmarks."""
    if Status.INTERRUPTED in statuses or Status.PENDING in statuses:
        return Status.INTERRUPTED
    if Status.FAILED in statuses:
        return Status.FAILED
    return Status.OK if Status.OK in statuses else Status.SKIPPED
