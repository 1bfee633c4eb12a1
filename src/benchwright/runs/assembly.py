"""A run's results, from what was planned and what was recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from benchwright.analysis.checks.validation import Circumstances, check
from benchwright.analysis.efficiency import peaks_of, with_peak_checked
from benchwright.core.benchmark import Benchmark
from benchwright.core.machine import Machine
from benchwright.core.results.check import CheckStatus
from benchwright.core.results.overlap import worst_overlap
from benchwright.core.results.whole_launches import only_whole
from benchwright.core.run import Launch, Plan, Result, culprit
from benchwright.core.status import Reason, Status

_WARN_BELOW = 0.90  # of the time together; the check `planning` wants more


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
    text = f"its processes were measured together for only {result.overlap * 100:.1f} % of the time, so not under the load of all"
    return replace(result, benchmark=replace(result.benchmark, notes=(*result.benchmark.notes, text)))


def held_against_peaks(results: Sequence[Result]) -> tuple[Result, ...]:
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
