"""The largest batch that fits, found by trying: running out of memory is an answer, any other failure ends the search."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.run import Result
from benchwright.core.status import Reason, Status
from benchwright.core.system import Observation
from benchwright.executors.observer import Observer
from benchwright.kinds.suite.batch_size_file import Saved, add_observations
from benchwright.kinds.suite.batch_sizes import Bounds, next_size, peak_memory, performance, ran_out_of_memory
from benchwright.runner.run import RunOrder, resolve_order
from benchwright.runner.run import run as run_order

_WITHIN = 0.02  # a trial takes as long as a launch, and one more size hardly changes what a device does
_AUTO_BATCH = re.compile(r"auto_batch\(\s*(\d{1,9})\s*\)", re.ASCII)


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome for one batch size: it fits, runs out of memory, or fails for another reason."""

    fits: bool
    memory_bytes: int | None = None
    perf: float | None = None
    reason: Reason | None = None
    detail: str | None = None

    @property
    def failed(self) -> bool:
        """For another reason than memory."""
        return not self.fits and self.reason is not Reason.OUT_OF_MEMORY


TryBatch = Callable[[str, int], Trial]
OnTrial = Callable[[str, int, Trial], None]


class BatchSearch(msgspec.Struct, frozen=True, kw_only=True):
    """`largest` None: none fitted. `problem`: why the search ended before the largest was known for certain."""

    benchmark: str
    largest: int | None
    trials: dict[int, Trial]  # in the order they were made
    problem: str | None = None

    def observations(self, cpu: int | None = None, now_s: float | None = None) -> list[Observation]:
        """Observations to save: sizes that fit, with their memory use, and sizes that do not."""
        when = time.time() if now_s is None else now_s
        return [
            Observation(batch_size=size, memory_bytes=t.memory_bytes, perf=t.perf, cpu=cpu, time=when)
            for size, t in self.trials.items()
            if not t.failed and (not t.fits or t.memory_bytes is not None)
        ]


class SuiteSearch(msgspec.Struct, frozen=True):
    """The findings for each benchmark, and the scaling file they were added to."""

    scaling_file: str
    searches: tuple[BatchSearch, ...]


def find_largest_batch(
    benchmark: str, try_batch: TryBatch, bounds: Bounds | None = None, on_trial: OnTrial | None = None
) -> BatchSearch:
    """Try sizes until the largest that fits is known, something fails, or the number of trials is used up."""
    limits = bounds or Bounds()
    trials: dict[int, Trial] = {}
    problem = None
    while (size := next_size({s: t.fits for s, t in trials.items()}, limits)) is not None:
        if len(trials) >= limits.trials:
            problem = f"gave up after {limits.trials} trials; a larger batch may fit"
            break
        trials[size] = try_batch(benchmark, size)
        if on_trial is not None:
            on_trial(benchmark, size, trials[size])
        if trials[size].failed:
            problem = f"batch size {size} failed: {trials[size].detail or 'unknown reason'}"
            break
    fitting = [size for size, trial in trials.items() if trial.fits]
    return BatchSearch(benchmark=benchmark, largest=max(fitting, default=None), trials=trials, problem=problem)


def find_and_save(
    benchmarks: Iterable[str],
    try_batch: TryBatch,
    scaling_file: Path,
    *,
    bounds: Bounds | None = None,
    cpu: int | None = None,
    on_trial: OnTrial | None = None,
    on_saved: Callable[[BatchSearch, Saved], None] | None = None,
) -> list[BatchSearch]:
    """Searches one benchmark after the other; each one's observations are saved before the next starts."""
    found = []
    for benchmark in benchmarks:
        search = find_largest_batch(benchmark, try_batch, bounds, on_trial)
        found.append(search)
        observations = search.observations(cpu)
        if observations:
            saved = add_observations(scaling_file, {benchmark: observations})
            if on_saved is not None:
                on_saved(search, saved)
    return found


def search_suite(order: RunOrder, observer: Observer, on_trial: OnTrial | None = None) -> SuiteSearch:
    """The largest batch of every benchmark of a suite that lets its batch size be chosen."""
    asked = order.options
    options = msgspec.structs.replace(asked, size=None)
    order = msgspec.structs.replace(order, options=options, deliveries=())  # trials are no results
    resolved = resolve_order(order)
    starts = {b.name: start for b in resolved.benchmarks if b.enabled and (start := default_batch(b)) is not None}
    if not starts:
        raise InvalidInput(
            "no benchmark lets its batch size be chosen", where="--size", remedy="write auto_batch(N) in its argv"
        )
    file = Path(asked.save_scaling or asked.scaling or order.base.path / "extra" / "scaling.yaml")
    paths = resolved.options.suite_paths
    multiple = 8 if paths is None else paths.sizing.multiple
    trials = suite_trials(order, observer)
    found: list[BatchSearch] = []
    for name, start in starts.items():
        bounds = Bounds(start=start, multiple=multiple, within=_WITHIN)
        found += find_and_save([name], trials, file, bounds=bounds, cpu=os.cpu_count(), on_trial=on_trial)
    return SuiteSearch(str(file), tuple(found))


def default_batch(benchmark: Benchmark) -> int | None:
    """The default of its `auto_batch(…)`; None: its batch size is fixed."""
    match = next(filter(None, (_AUTO_BATCH.search(word) for word in benchmark.workload.words)), None)
    return None if match is None else max(1, int(match[1]))


def suite_trials(order: RunOrder, observer: Observer) -> TryBatch:
    """Tries a batch size of a suite's benchmark by a separate run, made as `run` makes any."""

    def try_batch(name: str, size: int) -> Trial:
        asked = order.options
        system_options = {**asked.system_options, "sizer.batch_size": size}
        # What a trial saw is saved by the search.
        changed = msgspec.structs.replace(
            asked, select=(name,), system_options=system_options, size=None, save_scaling=None
        )
        trial = msgspec.structs.replace(
            order,
            options=changed,
            only=name,  # a tag may have the same name
            name=f"{name}.batch{size}.{{time}}",
            labels={**order.labels, "batch_size": str(size)},
        )
        return trial_of(run_order(trial, observer).result(name))

    return try_batch


def trial_of(result: Result) -> Trial:
    """The outcome of a trial, from its benchmark's result."""
    if result.status is Status.OK:
        peak = peak_memory(result.counted)
        return Trial(fits=True, memory_bytes=None if peak is None else int(peak), perf=performance(result.counted))
    reason = Reason.OUT_OF_MEMORY if ran_out_of_memory(result) else result.reason
    return Trial(fits=False, reason=reason, detail=result.detail)
