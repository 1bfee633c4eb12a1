"""A run's results, from what was planned and what was recorded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from benchwright.analysis.checks.validation import Circumstances, check
from benchwright.analysis.efficiency import peaks_of, with_peak_checked
from benchwright.core.benchmark import Benchmark
from benchwright.core.job import Job
from benchwright.core.launches import only_whole, worst_overlap
from benchwright.core.machine import Machine
from benchwright.core.note import Note
from benchwright.core.provenance import History, revisions_of
from benchwright.core.run import CheckStatus, Launch, Plan, Result, Run, culprit
from benchwright.core.status import Reason, Status
from benchwright.runs.base import Kinds
from benchwright.runs.stored_plan import StoredPlan

_MOST_SAID = 5  # differences listed in a note
_NO_FAILURE = (Reason.DISABLED, Reason.NOT_MEASURABLE, Reason.LACKS_DEVICES, Reason.LACKS_CAPABILITY)
_WARN_BELOW = 0.90  # of the time together; the check `planning` wants more


class RunParts(msgspec.Struct, frozen=True, kw_only=True):
    """All that a Run is made of: from its folder, or in memory while it is being measured."""

    folder: Path
    stored: StoredPlan  # without secrets
    machine: Machine
    plan: Plan  # as it is stored
    launches: Mapping[str, Sequence[Launch]]  # by benchmark: those recorded so far, in order
    history: History | None = None
    packages: dict[str, dict[str, str]] = {}
    notes: tuple[Note, ...] = ()
    ended: str | None = None


def assemble(parts: RunParts, kinds: Kinds) -> Run:
    """The run made of these parts. Nothing else makes one, except reading it whole from a file or the store."""
    settings = parts.stored.options
    planned: dict[str, list[tuple[Job, ...]]] = defaultdict(list)
    for launch in parts.plan.launches:
        planned[launch[0].benchmark].append(launch)
    results = checked_against_peaks(
        [
            result_of(
                benchmark,
                replace(parts.plan, launches=tuple(planned[benchmark.name])),
                parts.launches.get(benchmark.name, ()),
                validations=settings.validations,
                machine=parts.machine,
                packages=parts.packages,
                workers=settings.workers,
                promises_rate=kinds(benchmark).promises_rate(benchmark),
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
        revisions=revisions_of(parts.history),
        decision=settings.decision,
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
    """`launches`: the ones recorded so far. The first failed one gives the result its reason; if all ended well, the first failed
    check does. `validations`: layers requested beside the ones that always run. `promises_rate`: a result without a rate
    has failed."""
    if note := plan.notes.get(benchmark.name):
        benchmark = replace(benchmark, notes=tuple(dict.fromkeys((*benchmark.notes, *note))))
    if benchmark.name in plan.skipped:
        reason, detail = plan.skipped[benchmark.name]
        # A capability the machine lacks is not a failure; a missing install, a wrong description, a script that crashed is.
        status = Status.SKIPPED if reason in _NO_FAILURE else Status.FAILED
        return Result(benchmark=benchmark, status=status, reason=reason, detail=detail)
    planned = tuple(jobs for jobs in plan.launches if jobs[0].benchmark == benchmark.name)
    jobs = {together[0].position: len(together) for together in planned}
    result = _judged(benchmark, sum(map(len, planned)), only_whole(launches, jobs))
    if "planning" not in validations:  # which says so itself
        result = _overlap_noted(result)
    known = Circumstances(
        planned=planned, machine=machine, packages=packages or {}, workers=workers, promises_rate=promises_rate
    )
    return checked(replace(result, checks=check(result, validations, known)))


def _overlap_noted(result: Result) -> Result:
    """Adds a warning if its processes were measured apart for too long: their figures are then of a lighter load."""
    if result.overlap is None or result.overlap >= _WARN_BELOW:
        return result
    text = f"its processes were measured together for only {result.overlap * 100:.1f} % of the time; otherwise the load was lighter"
    return replace(result, benchmark=replace(result.benchmark, notes=(*result.benchmark.notes, text)))


def checked_against_peaks(results: Sequence[Result]) -> tuple[Result, ...]:
    """Fails results that claim more arithmetic than the machine can do, as measured in the same run."""
    peaks = peaks_of(results)
    if not peaks:
        return tuple(results)
    return tuple(checked(replace(r, checks=with_peak_checked(r, peaks))) for r in results)


def checked(result: Result) -> Result:
    """A failed check fails a benchmark that ended well."""
    bad = next((c for c in result.checks if c.status is CheckStatus.FAILED), None)
    if bad is None or result.status is not Status.OK:
        return result
    nothing = bad.layer == "ensure_rate" and not any(m.metric == "rate" for x in result.counted for m in x.measurements)
    reason = Reason.NO_DATA if nothing else Reason.INVALID
    return replace(result, status=Status.FAILED, reason=reason, detail=bad.explanation)


def _judged(benchmark: Benchmark, planned: int, recorded: tuple[Launch, ...]) -> Result:
    """Judged only by how the launches ended."""
    measured = [x for x in recorded if not x.warmup]
    bad = culprit(measured)
    if bad is None and (len(recorded) < planned or not planned):  # none planned: a script not searched for models yet
        status = Status.INTERRUPTED if recorded else Status.PENDING
        return Result(benchmark=benchmark, status=status, launches=recorded)
    bad = bad or next((x for x in measured if x.status is not Status.OK), None)
    if bad is None:
        return Result(benchmark=benchmark, status=Status.OK, launches=recorded, overlap=worst_overlap(recorded))
    several = sum(1 for x in recorded if x.position == bad.position) > 1
    detail = f"{bad.job}: {bad.detail}" if several and bad.detail else bad.detail
    return Result(benchmark=benchmark, status=bad.status, reason=bad.reason, detail=detail, launches=recorded)


def status_of(statuses: Sequence[Status]) -> Status:
    """The run's status, from those of its benchmarks."""
    if Status.INTERRUPTED in statuses or Status.PENDING in statuses:
        return Status.INTERRUPTED
    if Status.FAILED in statuses:
        return Status.FAILED
    return Status.OK if Status.OK in statuses else Status.SKIPPED


def mixed_notes(history: History | None) -> tuple[Note, ...]:
    """One note for each time the run was resumed with something changed."""
    resumed = history.resumed if history is not None else ()
    return tuple(
        Note(text=f"resumed with --anyway at {one.when} although something had changed: {_listed(one.differences)}")
        for one in resumed
    )


def marked_mixed(results: Sequence[Result], history: History | None) -> tuple[Result, ...]:
    """Adds a note to results whose launches are of several versions, and the fact `mixed_versions` to each launch."""
    if history is None or not history.resumed:
        return tuple(results)
    return tuple(_marked(result, history) for result in results)


def _marked(result: Result, history: History) -> Result:
    versions = sorted({history.version_of(x.job) for x in result.launches if not x.warmup})
    if len(versions) < 2:
        return result
    between = history.resumed[versions[0] : versions[-1]]
    found = list(dict.fromkeys(line for resumption in between for line in resumption.differences))
    note = f"its launches mix {len(versions)} versions: {_listed(found)}"
    launches = tuple(replace(x, facts=x.facts | {"mixed_versions": found}) for x in result.launches)
    benchmark = replace(result.benchmark, notes=(*result.benchmark.notes, note))
    return replace(result, benchmark=benchmark, launches=launches)


def _listed(differences: Sequence[str]) -> str:
    more = f"; and {len(differences) - _MOST_SAID} more" if len(differences) > _MOST_SAID else ""
    return "; ".join(differences[:_MOST_SAID]) + more
