"""Whether a rate is possible: compares the program's own timing with other clocks.

Work that is submitted to a device but not waited for looks finished at once: rates of billions of items a second.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from benchwright.core.benchmark import Benchmark
from benchwright.core.measurement import Measurement
from benchwright.core.run import Check, CheckStatus, Launch

TOLERANCE = 0.25  # between two clocks; a device's and the host's agree far better
_CLOCKS = 0.02  # how much two clocks may differ over a launch
_ODD = 1000.0  # a sample this many times the median is a measurement error


def implausible(launch: Launch, benchmark: Benchmark) -> Check:
    """The first reason why the launch's rate is impossible; otherwise, what confirms it."""
    rate = _of_process(launch, "rate")
    if rate is None:
        return _check(CheckStatus.NOT_APPLICABLE, "no loop reported a rate")
    return (
        _longer_than_it_lived(launch, benchmark, rate)
        or _against_the_host(launch)
        or _against_the_supervisor(launch)
        or _odd_sample(launch, rate)
        or _not_on_the_device(launch)
        or _agreed(launch)
    )


def _longer_than_it_lived(launch: Launch, benchmark: Benchmark, rate: Measurement) -> Check | None:
    """Steps and observations follow one another: together they cannot last longer than the process."""
    if not launch.duration_s:
        return None
    allowed = launch.duration_s * (1 + _CLOCKS) + 0.01
    steps = _of_process(launch, "step_time", rate)
    if steps is not None:
        took = math.fsum(steps.warmup_samples) + math.fsum(steps.samples)
        if took > allowed:
            count = len(steps.samples) + len(steps.warmup_samples)
            words = f"{count:,} steps of {launch.job} claim to have taken {took:.4g} s"
            return _check(CheckStatus.FAILED, f"{words}, but the process ran for {launch.duration_s:.4g} s")
        return None
    stop = benchmark.stop
    interval_s = stop.interval_s if stop is not None and stop.observations else None
    if interval_s and len(rate.samples) * interval_s > allowed:
        words = f"{launch.job} reported {len(rate.samples)} rates, each over {interval_s:g} s"
        return _check(CheckStatus.FAILED, f"{words}, but the process ran for {launch.duration_s:.4g} s")
    return None


def _against_the_host(launch: Launch) -> Check | None:
    """Compares steps timed by device events with the host's clock from one synchronisation to the next."""
    for loop in _loops(launch):
        by_device, by_host = loop["seconds"], loop["host_s"]
        if loop.get("on_device") and by_host > by_device * (1 + TOLERANCE):
            return _check(
                CheckStatus.FAILED,
                f"the steps of {launch.job} took {by_device:.4g} s by the device's clock, but {by_host:.4g} s by the host's: "
                f"the rate is {by_host / by_device:.3g} times too high; does all work run on the timed stream?",
            )
    return None


def _against_the_supervisor(launch: Launch) -> Check | None:
    """Compares the program's clock with the supervisor's, which runs in another process."""
    for loop in _loops(launch):
        bounds = loop.get("outside_s")
        if bounds is None:
            continue
        claimed, least, most = bounds
        if claimed < least * (1 - TOLERANCE) or claimed > most * (1 + TOLERANCE):
            return _check(
                CheckStatus.FAILED,
                f"measuring took {claimed:.4g} s by the clock of {launch.job}, but {least:.4g} to {most:.4g} s by the "
                "supervisor's",
            )
    return None


def _loops(launch: Launch) -> list[dict[str, Any]]:
    """The loops that were timed by both clocks."""
    return [loop for loop in launch.facts.get("loops") or () if loop.get("seconds") and loop.get("host_s")]


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
        "unless they wait for the device, they only show how fast work was submitted",
    )


def _agreed(launch: Launch) -> Check:
    checked = [loop for loop in _loops(launch) if _can_tell(loop.get("outside_s"))]
    if not checked:
        text = "too short, or not timed by benchprobe: no other clock can confirm the time"
        return _check(CheckStatus.NOT_APPLICABLE, text)
    claimed, least, most = checked[0]["outside_s"]
    return _check(
        CheckStatus.PASSED,
        f"measuring took {claimed:.4g} s by its own clock, and {least:.4g} to {most:.4g} s by the supervisor's",
    )


def _can_tell(bounds: Sequence[float] | None) -> bool:
    """Whether a clock at half or twice the speed would be noticed: a check that cannot fail is worthless."""
    if bounds is None:
        return False
    claimed, least, most = bounds
    return claimed / 2 < least * (1 - TOLERANCE) and claimed * 2 > most * (1 + TOLERANCE)


def _of_process(launch: Launch, metric: str, beside: Measurement | None = None) -> Measurement | None:
    """The first with samples; with `beside`, of the same rank."""
    wanted = None if beside is None else beside.labels
    found = (m for m in launch.measurements if m.metric == metric and m.samples)
    return next((m for m in found if wanted is None or m.labels == wanted), None)


def _check(status: CheckStatus, explanation: str) -> Check:
    return Check(layer="plausibility", status=status, explanation=explanation)
