"""Memory over batch size as runs measured it, kept for the sizing of later runs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from benchwright.analysis.score import process_value
from benchwright.core.run import Launch, Plan, Result, Run
from benchwright.core.status import Reason, Status
from benchwright.core.summary import PEAK_RSS
from benchwright.core.system import Observation, Scaling
from benchwright.kinds.suite.plan.planner import BATCH_SIZE
from benchwright.kinds.text_file import Path
from benchwright.kinds.yaml.value_types import (
    ANYTHING,
    CAPACITY,
    PLAIN_NUMBER,
    PLAIN_TEXT,
    MapOf,
    as_text,
    check,
    parse_capacity,
    plain_list,
    plain_table,
    shown,
    whole,
)
from benchwright.kinds.yaml.values import YamlFile, read_yaml

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


# Scaling files: how much memory a benchmark needed at which batch size.
#
# Two formats are read: `model: {batch size: memory}`, and `observations`, a list of
# `{batch_size, memory, perf, cpu, time}`. A memory of null says that this size did not fit.


VERSION = "version"
_NEWEST_VERSION = 2
_SOURCES = ("memory", "torchmem", "jaxmem")  # where it was not seen: what the framework says it allocated
_MEMORY = msgspec.structs.replace(CAPACITY, example="4108 MiB, or null if it did not fit")
_OBSERVATION = plain_table(
    "an observation",
    batch_size=whole(1),
    perf=PLAIN_NUMBER,
    cpu=whole(),
    time=PLAIN_NUMBER,
    **dict.fromkeys(_SOURCES, _MEMORY),
    **dict.fromkeys(("torch", "backend", "backend_version"), ANYTHING),
)
_ENTRY = plain_table(
    "a benchmark",
    arg=PLAIN_TEXT,
    model=MapOf(_MEMORY),
    observations=plain_list(_OBSERVATION),
    optimized=whole(1),
    tags=ANYTHING,
    version=ANYTHING,
)


def read_scaling(path: str) -> dict[str, Scaling]:
    """Memory use by batch size, for each benchmark; InvalidInput points at the fault."""
    file = read_yaml(path, kind="scaling file")
    check(file, MapOf(ANYTHING), "a scaling file")
    written = dict(file.value or {})
    check(file, PLAIN_NUMBER, "the version", (VERSION,))
    version = written.pop(VERSION, None)
    if version is not None and not 0 <= version <= _NEWEST_VERSION:
        raise file.error(f"version {version:g} is not known", (VERSION,), "use 1 or 2, or a newer benchwright")
    return {as_text(name): _entry(file, name, entry or {}) for name, entry in written.items()}


def _entry(file: YamlFile, name: object, entry: Any) -> Scaling:
    check(file, _ENTRY, shown(name), (name,))
    observations = [
        _observation(file, (name, "observations", n), body or {})
        for n, body in enumerate(entry.get("observations") or ())
    ]
    arg = entry.get("arg")
    return Scaling(
        observations=(*_model(file, (name, "model"), entry.get("model") or {}), *observations),
        arg=None if arg is None else as_text(arg),
        optimized=entry.get("optimized"),
    )


def _model(file: YamlFile, path: Path, model: dict[Any, Any]) -> list[Observation]:
    found = []
    for batch_size, memory in model.items():
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            what = f"'{as_text(batch_size)}' is not a batch size"
            raise file.error(what, (*path, batch_size), "write 1 or more", key=True)
        found.append(Observation(batch_size=batch_size, memory_bytes=_memory(file, (*path, batch_size), memory)))
    return sorted(found, key=lambda observation: observation.batch_size)


def _observation(file: YamlFile, path: Path, written: dict[str, Any]) -> Observation:
    if written.get("batch_size") is None:
        raise file.error("an observation without a batch_size", path, "give it one, or remove it")
    source = next((key for key in _SOURCES if written.get(key) is not None), _SOURCES[0])
    perf, time = (None if written.get(key) is None else float(written[key]) for key in ("perf", "time"))
    return Observation(
        batch_size=written["batch_size"],
        memory_bytes=_memory(file, (*path, source), written.get(source)),
        perf=perf,
        cpu=written.get("cpu"),
        time=time,
    )


def _memory(file: YamlFile, path: Path, value: object) -> int | None:
    memory_bytes = None if value is None else parse_capacity(value)
    if memory_bytes is None and value is not None:  # `All` is an amount of memory only where a device is known
        raise file.error(f"{shown(value)} is not {_MEMORY.says}", path, f"write {_MEMORY.example}")
    return memory_bytes


# The search for the largest batch that fits: double until one does not, then halve the gap.


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """Where to look. Sizes are multiples of `multiple`, except below it: there every size is looked at."""

    start: int = 8
    multiple: int = 8
    most: int = 1 << 20
    trials: int = 20
    within: float = 0.0  # the search ends when the largest is known up to this share of it


def next_size(fits: Mapping[int, bool], bounds: Bounds) -> int | None:
    """The size to try after those in `fits` (size → whether it fitted); None: the largest is known.

    What fits is taken to fit at every smaller size, too.
    """
    most = _down(max(1, bounds.most), bounds.multiple)
    if not fits:
        return min(most, _down(max(1, bounds.start), bounds.multiple))
    largest = max((size for size, fitted in fits.items() if fitted), default=0)
    too_large = min((size for size, fitted in fits.items() if not fitted and size > largest), default=None)
    if too_large is None:
        return None if largest >= most else min(most, _down(2 * largest, bounds.multiple))
    if largest and too_large - largest <= bounds.within * largest:
        return None
    # Below the first multiple the steps are of one; above it they are of the multiple.
    step = bounds.multiple if too_large > bounds.multiple else 1
    middle = _down((largest + too_large) // 2, step)
    if middle <= largest:
        middle = _down(largest, step) + step
    return middle if largest < middle < too_large else None


def _down(size: int, step: int) -> int:
    """The nearest multiple of `step` that is not larger; a size below the first stays as it is."""
    return size - size % step if size >= step else size
