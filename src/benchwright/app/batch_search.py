"""The largest batch that fits, found by trying: running out of memory is an answer, any other failure ends the search."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from benchwright.app.measure import measure
from benchwright.app.resolve import resolve
from benchwright.app.run import executor_for
from benchwright.core.benchmark import Benchmark, Command, Script
from benchwright.core.errors import InvalidInput
from benchwright.core.node.system import Observation
from benchwright.core.request import Request
from benchwright.core.run import Result
from benchwright.core.status import Reason, Status
from benchwright.executors.observer import Observer
from benchwright.kinds.suite.scaling import peak_memory, performance, ran_out_of_memory
from benchwright.plan.suite.batch_search import Bounds, next_size
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.scaling_file import Saved, add_observations

_AUTO_BATCH = re.compile(r"auto_batch\(\s*(\d{1,9})\s*\)", re.ASCII)


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one batch size. It fits; or not, for lack of memory; or it failed for another reason."""

    fits: bool
    memory_bytes: int | None = None
    perf: float | None = None
    reason: Reason | None = None
    detail: str | None = None

    @property
    def failed(self) -> bool:
        """It tells nothing about memory."""
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
        """What is worth keeping: what fitted, with its memory, and what did not."""
        when = time.time() if now_s is None else now_s
        return [
            Observation(batch_size=size, memory_bytes=t.memory_bytes, perf=t.perf, cpu=cpu, time=when)
            for size, t in self.trials.items()
            if not t.failed and (not t.fits or t.memory_bytes is not None)
        ]


def find_largest_batch(
    benchmark: str, try_batch: TryBatch, bounds: Bounds | None = None, on_trial: OnTrial | None = None
) -> BatchSearch:
    """Try sizes until the largest that fits is known, something fails, or the number of trials is used up."""
    limits = bounds or Bounds()
    trials: dict[int, Trial] = {}
    problem = None
    while (size := next_size({s: t.fits for s, t in trials.items()}, limits)) is not None:
        if len(trials) >= limits.trials:
            problem = f"{limits.trials} trials were not enough; the largest that fits may be larger"
            break
        trials[size] = try_batch(benchmark, size)
        if on_trial is not None:
            on_trial(benchmark, size, trials[size])
        if trials[size].failed:
            problem = f"batch size {size} failed: {trials[size].detail or 'for an unknown reason'}"
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
    """Searches one after the other; what each has seen is in the scaling file before the next begins."""
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


def default_batch(benchmark: Benchmark) -> int | None:
    """The default of its `auto_batch(…)`; None: its batch size is not for us to choose."""
    workload = benchmark.workload
    words = workload.args if isinstance(workload, Script) else workload.argv if isinstance(workload, Command) else ()
    match = next(filter(None, (_AUTO_BATCH.search(word) for word in words)), None)
    return None if match is None else max(1, int(match[1]))


def suite_trials(request: Request, base: BaseFolder, observer: Observer) -> TryBatch:
    """Tries a batch size of a suite's benchmark by a run of its own, as `run` would make it."""

    def try_batch(name: str, size: int) -> Trial:
        if request.suite is None:
            raise InvalidInput("batch sizes are searched for benchmarks of a suite", remedy="name a suite file")
        options = {**request.suite.options, "sizer.batch_size": size}
        suite = msgspec.structs.replace(request.suite, select=(name,), options=options, size=None)
        resolved = resolve(msgspec.structs.replace(request, suite=suite))
        alone = [b for b in resolved.benchmarks if b.name == name]  # a tag may have the same name
        with executor_for(resolved.settings, base) as executor:
            run = measure(
                alone,
                resolved.settings,
                base=base,
                name=f"{name}.batch{size}.{{time}}",
                executor=executor,
                observer=observer,
                labels={**request.options.labels, "batch_size": str(size)},
            )
        return trial_of(run.result(name))

    return try_batch


def trial_of(result: Result) -> Trial:
    """What a benchmark's result says about the batch size it was given."""
    if result.status is Status.OK:
        peak = peak_memory(result.counted)
        return Trial(fits=True, memory_bytes=None if peak is None else int(peak), perf=performance(result.counted))
    reason = Reason.OUT_OF_MEMORY if ran_out_of_memory(result) else result.reason
    return Trial(fits=False, reason=reason, detail=result.detail)
