"""Whether a rate can be true: rate × time against what was counted, and against how long the process lived.

Work that is handed to a device and not waited for looks finished at once: rates of billions of items a second.
"""

from __future__ import annotations

import math
import statistics

from benchwright.domain.benchmark import Benchmark
from benchwright.domain.check import Check, CheckStatus
from benchwright.domain.measurement import Measurement
from benchwright.domain.run import Launch

TOLERANCE = 0.25  # between rate × time and the items counted; device clocks and the host's differ by far less
_CLOCKS = 0.02  # what two clocks may differ by over a launch
_ODD = 1000.0  # a sample this many times the median was not measured right


def implausible(launch: Launch, benchmark: Benchmark) -> Check:
    """The first thing about the launch's rate that cannot be true; else what was found to agree."""
    rate = _of_process(launch, "rate")
    if rate is None:
        return _check(CheckStatus.NOT_APPLICABLE, "there is no rate of a loop to look at")
    return (
        _longer_than_it_lived(launch, benchmark, rate)
        or _more_than_counted(launch, rate)
        or _odd_sample(launch, rate)
        or _not_on_the_device(launch)
        or _agreed(launch, rate)
    )


def _longer_than_it_lived(launch: Launch, benchmark: Benchmark, rate: Measurement) -> Check | None:
    """Steps follow each other, and so do observations: together they cannot last longer than the process."""
    if not launch.duration_s:
        return None
    allowed = launch.duration_s * (1 + _CLOCKS) + 0.01
    steps = _of_process(launch, "step_time", rate)
    if steps is not None:
        took = math.fsum((*steps.warmup_samples, *steps.samples))
        if took > allowed:
            count = len(steps.samples) + len(steps.warmup_samples)
            words = f"{count:,} steps of {launch.job} are said to have taken {took:.4g} s"
            return _check(CheckStatus.FAILED, f"{words}, but the process lived {launch.duration_s:.4g} s")
        return None
    stop = benchmark.stop
    interval_s = stop.interval_s if stop is not None and stop.observations else None
    if interval_s and len(rate.samples) * interval_s > allowed:
        words = f"{launch.job} told {len(rate.samples)} rates, each over {interval_s:g} s"
        return _check(CheckStatus.FAILED, f"{words}, but the process lived {launch.duration_s:.4g} s")
    return None


def _more_than_counted(launch: Launch, rate: Measurement) -> Check | None:
    found = _claimed_and_counted(launch, rate)
    if found is None:
        return None
    claimed, counted, wall_s = found
    if claimed <= counted * (1 + TOLERANCE):
        return None
    unit = (rate.unit or "items/s").removesuffix("/s")
    return _check(
        CheckStatus.FAILED,
        f"the rates of {launch.job} over its {wall_s:.4g} s of measuring come to {claimed:.4g} {unit}, but {counted:.4g} "
        f"were counted: {claimed / counted:.3g} times; time the steps with the device synchronised",
    )


def _claimed_and_counted(launch: Launch, rate: Measurement) -> tuple[float, float, float] | None:
    """Items by the rates over the measured wall time, items that were counted, and that time in seconds."""
    items, wall_s = launch.facts.get("counted_items"), launch.facts.get("measured_s")
    if isinstance(items, int | float) and isinstance(wall_s, int | float) and items > 0 and wall_s > 0:
        return statistics.median(rate.samples) * wall_s, float(items), float(wall_s)
    steps, throughput = _of_process(launch, "step_time", rate), _of_process(launch, "throughput", rate)
    if steps is None or throughput is None or throughput.samples[0] <= 0 or len(steps.samples) != len(rate.samples):
        return None
    counted = math.fsum(r * s for r, s in zip(rate.samples, steps.samples, strict=True))
    wall_s = counted / throughput.samples[0]
    pace = counted / math.fsum(steps.samples)  # the mean rate over the steps' own time
    return pace * wall_s, counted, wall_s


def _odd_sample(launch: Launch, rate: Measurement) -> Check | None:
    median, largest = statistics.median(rate.samples), max(rate.samples)
    if median <= 0 or largest <= _ODD * median:
        return None
    words = f"one rate of {launch.job} is {largest:.4g} {rate.unit or ''}".rstrip()
    return _check(CheckStatus.WARNED, f"{words}, {largest / median:,.0f} times the median")


def _not_on_the_device(launch: Launch) -> Check | None:
    loops = launch.facts.get("loops") or ()
    if not launch.devices or not loops or any(loop.get("on_device") for loop in loops):
        return None
    return _check(
        CheckStatus.WARNED,
        f"{launch.job} had GPU {', '.join(map(str, launch.devices))}, but its steps were timed by the host's clock: "
        "if they do not wait for the device, they only tell how fast work was handed over",
    )


def _agreed(launch: Launch, rate: Measurement) -> Check:
    found = _claimed_and_counted(launch, rate)
    if found is None:
        return _check(
            CheckStatus.NOT_APPLICABLE, "nothing was counted beside the rate, so there is nothing to hold it against"
        )
    claimed, counted, wall_s = found
    return _check(
        CheckStatus.PASSED,
        f"{counted:.6g} counted in {wall_s:.4g} s; the rates come to {_percent(claimed / counted, 1)} of that",
    )


def _of_process(launch: Launch, metric: str, beside: Measurement | None = None) -> Measurement | None:
    """The first with samples, of the rank of `beside` if that is given."""
    wanted = None if beside is None else beside.labels
    found = (m for m in launch.measurements if m.metric == metric and m.samples)
    return next((m for m in found if wanted is None or m.labels == wanted), None)


def _percent(share: float, digits: int) -> str:
    return f"{share * 100:.{digits}f} %"


def _check(status: CheckStatus, explanation: str) -> Check:
    return Check(layer="plausibility", status=status, explanation=explanation)
