"""What a run saw of memory over batch size, kept for the sizing of later runs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

from benchwright.analysis.score import process_value
from benchwright.core.node.system import Observation
from benchwright.core.results.peak_memory import PEAK_RSS
from benchwright.core.run import Launch, Plan, Result, Run
from benchwright.core.status import Reason, Status
from benchwright.kinds.suite.plan.planner import BATCH_SIZE

_DEVICE_MEMORY = ("gpu.memory", "gpu.memory_peak")


def observations_of(run: Run, plan: Plan) -> dict[str, list[Observation]]:
    """For each benchmark that was given a batch size: what it needed. Out of memory is an observation too."""
    sizes = {
        job.benchmark: int(job.env[BATCH_SIZE] or 0)
        for jobs in plan.launches
        for job in jobs
        if job.env.get(BATCH_SIZE)
    }
    found: dict[str, list[Observation]] = {}
    for result in run.results:
        size = sizes.get(result.benchmark.name)
        if size and (seen := observation(result, size)) is not None:
            found[result.benchmark.name] = [seen]
    return found


def observation(result: Result, size: int) -> Observation | None:
    """Memory use and rate of `result` at batches of `size`; None if its memory use is unknown."""
    if ran_out_of_memory(result):
        return Observation(batch_size=size, memory_bytes=None, time=time.time())
    peak = peak_memory(result.counted)
    if result.status is not Status.OK or peak is None:
        return None
    return Observation(batch_size=size, memory_bytes=int(peak), perf=performance(result.counted), time=time.time())


def ran_out_of_memory(result: Result) -> bool:
    """One process of several that does may take the others with it, and they may be seen to fail first."""
    reasons = (result.reason, *(launch.reason for launch in result.launches))
    return result.status is not Status.OK and Reason.OUT_OF_MEMORY in reasons


def performance(launches: Sequence[Launch]) -> float | None:
    """The rate of a process, summed over its ranks; None if it reported none."""
    rates = [
        process_value(x, "rate") for x in launches if any(m.metric == "rate" and m.samples for m in x.measurements)
    ]
    return statistics.median(rates) if rates else None


def peak_memory(launches: Sequence[Launch]) -> float | None:
    """The most memory of a device; where there is none, the RSS of a process tree, which is known of every launch."""
    for names in (_DEVICE_MEMORY, (PEAK_RSS,)):
        samples = [max(m.samples) for x in launches for m in x.measurements if m.metric in names and m.samples]
        if samples:
            return max(samples)
    return None
