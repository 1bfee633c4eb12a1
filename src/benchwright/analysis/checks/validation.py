"""Validation layers: whether a result is credible, each verdict with the figures behind it.

`error`, `ensure_rate` and `loss` always run; the others only on request.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from benchwright.analysis.score import process_value, scored_metric
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.job import Job
from benchwright.core.launches import by_position
from benchwright.core.machine import Machine
from benchwright.core.measurement import Measurement, first_bad_sample
from benchwright.core.run import Check, CheckStatus, Launch, Result, culprit, why
from benchwright.core.status import Status

# Whether a rate is possible: compares the program's own timing with other clocks.
#
# Work that is submitted to a device but not waited for looks finished at once: rates of billions of items a second.


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


ALWAYS = ("error", "ensure_rate", "loss")
NAMED = ("usage", "planning", "version", "plausibility")
LEAST_OVERLAP = 0.95
_THRESHOLD = 0.5  # of load and of memory, unless the suite sets another


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """Context that a layer may need besides the result."""

    planned: tuple[tuple[Job, ...], ...] = ()  # the benchmark's launches; empty if the plan is unknown
    machine: Machine | None = None
    packages: Mapping[str, Mapping[str, str]] = {}  # interpreter → package → version
    workers: int | None = None
    promises_rate: bool = False  # a result without a rate has failed


def validation_names(text: str, *, where: str = "--validations") -> tuple[str, ...]:
    """The layers in a comma-separated list; `all` means every one. InvalidInput for an unknown word."""
    known = (*ALWAYS, *NAMED)
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in known and word != "all":
            raise InvalidInput(
                f"'{word}' is not a validation layer",
                where=where,
                remedy=did_you_mean(word, known) or f"use {', '.join(known)} or all",
            )
    return tuple(n for n in known if n in words or "all" in words)


def check(result: Result, validations: Sequence[str], circumstances: Circumstances | None = None) -> tuple[Check, ...]:
    """One Check for each layer that runs; none for a benchmark that did not finish."""
    if result.status not in (Status.OK, Status.FAILED):
        return ()
    known = circumstances or Circumstances()
    layers = [name for name in (*ALWAYS, *NAMED) if name in ALWAYS or name in validations]
    return tuple(_LAYERS[name](result, known, name in validations) for name in layers)


def _error(result: Result, _: Circumstances, named: bool) -> Check:
    measured = [x for x in result.launches if not x.warmup]
    bad = [x for x in measured if x.status is not Status.OK]
    if not bad and result.status is Status.OK:
        how = "ended with exit code 0" if all(x.exit_code == 0 for x in measured) else "succeeded"
        return _passed("error", f"{_all_of(measured)} {how}")
    if not bad:
        return _failed("error", result.detail or "the benchmark failed")
    first = culprit(measured) or bad[0]
    return _failed("error", f"{len(bad)} of {len(measured)} launches failed; {first.job} {why(first)}")


def _ensure_rate(result: Result, known: Circumstances, named: bool) -> Check:
    """A suite's benchmark must have a rate; other benchmarks need not."""
    if not result.counted:
        silent = any(x.status is Status.OK and not x.warmup for x in result.launches)
        why = "no process reported a rate" if silent else "no launch succeeded, so there is no rate"
        return _failed("ensure_rate", why)
    metric = scored_metric(result)
    if metric is not None and not named and not known.promises_rate and not _is_rate(result, metric):
        return _not_applicable("ensure_rate", f"{metric} need not be a rate")
    if metric is not None:
        values = [process_value(x, metric, known.workers) for x in result.counted]
        low, high = min(values), max(values)
        figures = f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"
        if all(math.isfinite(v) and v > 0 for v in values):
            return _passed("ensure_rate", f"{metric} {figures} in {_all_of(result.counted)}")
        return _failed("ensure_rate", f"{metric} is {figures}, not above 0 in every launch")
    asked = [s.name for s in result.benchmark.metrics if s.required]
    if asked:
        return _passed("ensure_rate", f"no rate, but the requested metrics: {', '.join(asked)}")
    if not known.promises_rate and not named:
        return _not_applicable("ensure_rate", "no rate is expected of it")
    return _failed(
        "ensure_rate", "no rate: no loop was instrumented, and the entry names no metrics to read from its output"
    )


def _is_rate(result: Result, metric: str) -> bool:
    """Whether a loop reported it; a pattern may read anything from a log."""
    return any(m.metric == metric and m.source == "loop" for x in result.counted for m in x.measurements)


def _loss(result: Result, _: Circumstances, named: bool) -> Check:
    measured = [x for x in result.launches if not x.warmup]
    series = [(x, m) for x in measured for m in x.measurements if _is_loss(m.metric, m.source)]
    if not series:
        return _not_applicable("loss", "no loss reported")
    count = 0
    for launch, m in series:
        of_launch = len(m.warmup_samples) + len(m.samples)
        bad = first_bad_sample(m)
        if bad is not None:
            place = f"its value {bad[0] + 1} of {of_launch}"
            return _failed("loss", f"{m.metric} became {bad[1]} at {place} in {launch.job}")
        count += of_launch
    return _passed("loss", f"all {count:,} values of {', '.join(sorted({m.metric for _, m in series}))} are finite")


def _is_loss(metric: str, source: str) -> bool:
    return "loss" in metric.lower() and source in ("give", "log", "import")


def _usage(result: Result, known: Circumstances, named: bool) -> Check:
    """Thresholds are fractions of a device's time and of its memory."""
    measured = [x for x in result.launches if not x.warmup]
    loads = _by_device(measured, "gpu.load", statistics.fmean, 100.0)
    if not loads:
        devices = any(x.devices for x in measured)
        return _not_applicable("usage", "its devices reported no load" if devices else "it ran on no GPU")
    sizes = _memory_sizes(measured, known.machine)
    memories = {
        device: used / size
        for device, used in _by_device(measured, "gpu.memory", max, 1.0).items()
        if (size := sizes.get(device.partition(" ")[0]))
    }
    settings = result.benchmark.validation.get("usage") or {}
    least_load = _threshold(settings, "gpu_load_threshold")
    least_memory = _threshold(settings, "gpu_mem_threshold")
    low = [
        f"GPU {d} was busy {_percent(v)} of the time, less than {_percent(least_load)}"
        for d, v in loads.items()
        if v < least_load
    ]
    low += [
        f"GPU {d} used {_percent(v)} of its memory, less than {_percent(least_memory)}"
        for d, v in memories.items()
        if v < least_memory
    ]
    if low:
        return _failed("usage", "; ".join(low))
    memory = (
        f", memory {_percent(min(memories.values()))} or more" if memories else "; the size of its memory is unknown"
    )
    return _passed(
        "usage", f"{_counted(len(loads), 'GPU')} busy {_percent(min(loads.values()))} of the time or more{memory}"
    )


def _threshold(settings: Mapping[str, object], key: str) -> float:
    value = settings.get(key, _THRESHOLD)
    return float(value) if isinstance(value, int | float) else _THRESHOLD


def _memory_sizes(launches: Sequence[Launch], machine: Machine | None) -> dict[str, float]:
    """The memory of each device in bytes: the machine's, else as reported by the programs."""
    memory = [(x.facts.get("reported") or {}).get("gpu_memory_bytes") or {} for x in launches]
    sizes = {str(device): float(size) for said in memory for device, size in said.items() if size}
    here = machine.accelerators if machine is not None else ()
    return sizes | {str(a.index): float(a.memory_bytes) for a in here if a.memory_bytes}


def _by_device(
    launches: Sequence[Launch], metric: str, condense: Callable[[Sequence[float]], float], unit: float
) -> dict[str, float]:
    samples: dict[str, list[float]] = {}
    for launch in launches:
        for m in launch.measurements:
            if m.metric == metric and m.samples:
                on = f" of {m.labels['node']}" if "node" in m.labels else ""
                samples.setdefault(m.labels.get("device", "?") + on, []).extend(m.samples)
    return {device: condense(values) / unit for device, values in sorted(samples.items())}


def _planning(result: Result, known: Circumstances, named: bool) -> Check:
    """Every planned process was launched, on its own device if so planned, and all were measured at the same time."""
    placement = result.benchmark.placement
    groups = by_position(x for x in result.launches if not x.warmup)
    expected = {jobs[0].position: len(jobs) for jobs in known.planned if jobs}
    for position, jobs in groups.items():
        wanted = expected.get(position, len(jobs) if placement.per_device else placement.jobs * placement.machines)
        if len(jobs) != wanted:
            return _failed("planning", f"{len(jobs)} processes were launched together, not {wanted}")
        devices = [device for x in jobs for device in x.devices]
        once = placement.per_device and placement.machines == 1
        if once and len(devices) != len(set(devices)):
            return _failed("planning", f"two processes had the same device: {', '.join(map(str, sorted(devices)))}")
    count = max(map(len, groups.values()), default=0)
    if not count:
        return _failed("planning", "nothing was launched")
    how = "one for each device" if placement.per_device and count > 1 else "as planned"
    words = f"{_counted(count, 'process', 'processes')} a launch, {how}"
    if count == 1:
        return _passed("planning", words)
    if result.overlap is None:
        return _passed("planning", f"{words}; it is unknown when each was measured")
    if result.overlap < LEAST_OVERLAP:
        return _failed(
            "planning",
            f"{words}, but all were measured at the same time for only {_percent(result.overlap, 1)} of the time (at least {_percent(LEAST_OVERLAP)})",
        )
    return _passed("planning", f"{words}, measured together {_percent(result.overlap, 1)} of the time")


def _version(result: Result, known: Circumstances, named: bool) -> Check:
    measured = [x for x in result.launches if not x.warmup]
    pythons = [x.facts["python"] for x in measured if isinstance(x.facts.get("python"), dict)]
    if not pythons:
        return _not_applicable("version", _untold(measured, known))
    for key, what in (("python", "Python"), ("benchprobe", "benchprobe"), ("version", "the event stream")):
        seen = sorted({str(facts[key]) for facts in pythons if facts.get(key) is not None})
        if len(seen) > 1:
            return _failed("version", f"launches used different versions of {what}: {', '.join(seen)}")
    executables = list(dict.fromkeys(str(facts.get("executable")) for facts in pythons))
    environments = [known.packages[e] for e in executables if e in known.packages]
    names = sorted({name for packages in environments for name in packages})
    for name in names:
        versions = sorted({packages.get(name, "none") for packages in environments})
        if len(versions) > 1:
            return _failed("version", f"launches used different versions of {name}: {', '.join(versions)}")
    python = str(pythons[0].get("python"))
    packages = f" and the same {_counted(len(names), 'package')}" if names else "; no packages found"
    if names and len(environments) < len(executables):
        packages = f"; packages were found in {len(environments)} of {len(executables)} environments"
    silent = "" if len(pythons) == len(measured) else "; the others did not report it"
    those = _all_of(pythons) if not silent else f"{len(pythons)} of {len(measured)} launches"
    return _passed("version", f"{those} used Python {python}{packages}{silent}")


def _untold(measured: Sequence[Launch], known: Circumstances) -> str:
    """For programs without benchprobe, only their interpreter is known."""
    names = {(x.facts.get("reported") or {}).get("dialect") for x in measured}
    by = names.pop() if len(names) == 1 else None
    text = (
        f"{by} does not report which Python it ran in" if by else "its programs did not report which Python they used"
    )
    began = {job.argv[0] for jobs in known.planned for job in jobs if job.argv and not job.shell}
    executable = began.pop() if len(began) == 1 else ""
    if not executable.rpartition("/")[2].startswith("python"):
        return text
    packages = known.packages.get(executable)
    found = f", which has {_counted(len(packages), 'package')}" if packages else ""
    return f"{text}; it was started with {executable}{found}"


def _plausibility(result: Result, known: Circumstances, named: bool) -> Check:
    found = [implausible(x, result.benchmark) for x in result.counted]
    if not found:
        return _not_applicable("plausibility", "no launch succeeded")
    for status in (CheckStatus.FAILED, CheckStatus.WARNED):
        worst = next((f for f in found if f.status is status), None)
        if worst is not None:
            return worst
    return next((f for f in found if f.status is CheckStatus.PASSED), found[0])


_LAYERS: dict[str, Callable[[Result, Circumstances, bool], Check]] = {
    "error": _error,
    "ensure_rate": _ensure_rate,
    "loss": _loss,
    "usage": _usage,
    "planning": _planning,
    "version": _version,
    "plausibility": _plausibility,
}


def _passed(layer: str, explanation: str) -> Check:
    return Check(layer=layer, status=CheckStatus.PASSED, explanation=explanation)


def _failed(layer: str, explanation: str) -> Check:
    return Check(layer=layer, status=CheckStatus.FAILED, explanation=explanation)


def _not_applicable(layer: str, explanation: str) -> Check:
    return Check(layer=layer, status=CheckStatus.NOT_APPLICABLE, explanation=explanation)


def _all_of(things: Sequence[object]) -> str:
    return "the one launch" if len(things) == 1 else f"all {len(things)} launches"


def _percent(share: float, digits: int = 0) -> str:
    return f"{share * 100:.{digits}f} %"


def _counted(count: int, one: str, more: str | None = None) -> str:
    return f"{count} {one if count == 1 else more or one + 's'}"
