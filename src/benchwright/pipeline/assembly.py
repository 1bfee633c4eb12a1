"""A run's results, from what was planned and what was recorded."""

from __future__ import annotations

from collections.abc import Sequence

from benchwright.analysis.summary import overlap
from benchwright.domain.benchmark import Benchmark
from benchwright.domain.run import Launch, Plan, Result
from benchwright.domain.status import Status


def result_of(benchmark: Benchmark, plan: Plan, launches: Sequence[Launch]) -> Result:
    """`launches`: those that were recorded so far. The first failed one gives the result its reason."""
    if benchmark.name in plan.skipped:
        reason, detail = plan.skipped[benchmark.name]
        return Result(benchmark=benchmark, status=Status.SKIPPED, reason=reason, detail=detail)
    recorded = tuple(launches)
    planned = sum(len(jobs) for jobs in plan.launches if jobs[0].benchmark == benchmark.name)
    measured = [x for x in recorded if not x.warmup]
    bad = next((x for x in measured if x.status is Status.FAILED), None)
    if bad is None and len(recorded) < planned:
        status = Status.INTERRUPTED if recorded else Status.PENDING
        return Result(benchmark=benchmark, status=status, launches=recorded)
    bad = bad or next((x for x in measured if x.status is not Status.OK), None)
    if bad is None:
        return Result(benchmark=benchmark, status=Status.OK, launches=recorded, overlap=_worst_overlap(recorded))
    return Result(benchmark=benchmark, status=bad.status, reason=bad.reason, detail=bad.detail, launches=recorded)


def status_of(statuses: Sequence[Status]) -> Status:
    """The run's own status, from those of its benchmarks."""
    if Status.INTERRUPTED in statuses or Status.PENDING in statuses:
        return Status.INTERRUPTED
    if Status.FAILED in statuses:
        return Status.FAILED
    return Status.OK if Status.OK in statuses else Status.SKIPPED


def _worst_overlap(launches: Sequence[Launch]) -> float | None:
    """Of launches whose jobs ran together, the smallest share of common measuring time."""
    together: dict[int, list[Launch]] = {}
    for launch in launches:
        together.setdefault(launch.position, []).append(launch)
    shares = [share for jobs in together.values() if (share := overlap(jobs)) is not None]
    return min(shares, default=None)
