"""The largest batch that fits: of programs that really have no more memory, and of ones that fail otherwise."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from builders import failed_launch
from suite_runs import measured, result

from benchwright.core.benchmark import Benchmark, Script
from benchwright.core.run import Launch, Result
from benchwright.core.status import Reason, Status
from benchwright.core.stop_rule import Warmup
from benchwright.executors.local import LocalExecutor
from benchwright.executors.observer import Observer
from benchwright.kinds.suite.batch_sizes import Bounds, observation, read_scaling
from benchwright.options.table import Options
from benchwright.runner.batch_search import (
    Trial,
    default_batch,
    find_and_save,
    find_largest_batch,
    suite_trials,
    trial_of,
)
from benchwright.runner.measure import measure
from benchwright.runner.resolve import resolve
from benchwright.runner.run import RunOrder
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.known_runs import all_runs

PROGRAM = Path(__file__).parents[2] / "programs" / "fill_memory.py"
MIB = 1 << 20


class Measuring:
    """Measures the program with a batch size, as `run` does."""

    def __init__(self, folder: Path, limit: int, how: str) -> None:
        self.base = BaseFolder(folder)
        self.limit, self.how = limit, how

    def __call__(self, name: str, size: int) -> Trial:
        args = (str(size), str(self.limit), self.how)
        workload = Script(path=str(PROGRAM), args=args, cwd="/", python=sys.executable)
        benchmark = Benchmark(name=name, workload=workload, source="test", warmup=Warmup(steps=2))
        with LocalExecutor() as executor:
            run = measure([benchmark], Options(), base=self.base, name=f"{name}-{size}", executor=executor)
        return trial_of(run.results[0])


@pytest.mark.parametrize("how", ["really", pytest.param("says", marks=pytest.mark.long)])
def test_the_largest_batch_of_a_real_program_is_found_and_kept(tmp_path, how):
    path = tmp_path / "scaling.yaml"
    [search] = find_and_save(["hungry"], Measuring(tmp_path, 44, how), path, bounds=Bounds(start=16), cpu=4)
    assert (search.largest, search.problem) == (40, None)
    assert {size: trial.fits for size, trial in search.trials.items()} == {
        16: True, 32: True, 64: False, 48: False, 40: True,
    }  # fmt: skip
    assert all(t.reason is Reason.OUT_OF_MEMORY for t in search.trials.values() if not t.fits)
    kept = read_scaling(str(path))["hungry"].observations
    assert [(o.batch_size, o.memory_bytes is not None, o.perf is not None, o.cpu) for o in kept] == [
        (16, True, True, 4), (32, True, True, 4), (40, True, True, 4), (48, False, False, 4), (64, False, False, 4),
    ]  # fmt: skip
    memory = {o.batch_size: o.memory_bytes for o in kept}
    assert memory[32] - memory[16] == pytest.approx(16 * MIB, abs=4 * MIB)  # Python compiles benchprobe in the first


def test_the_batch_of_a_suites_benchmark_is_found_by_runs_of_its_own(tmp_path):
    (tmp_path / "main.py").write_text(PROGRAM.read_text())
    (tmp_path / "suite.yaml").write_text(
        "hungry:\n  definition: .\n  warmup: 2\n  plan: {method: njobs, n: 1}\n  argv: [auto_batch(20), 30, really]\n"
        "fixed:\n  definition: .\n  plan: {method: njobs, n: 1}\n  argv: [1, 30, really]\n"
    )
    base = BaseFolder(tmp_path / "base")
    target = str(tmp_path / "suite.yaml")
    options = Options(targets=(target,), base=str(base.path), use_current_env=True, python=sys.executable)
    defaults = {b.name: default_batch(b) for b in resolve(options).benchmarks}
    assert defaults == {"hungry": 20, "fixed": None}
    order = RunOrder(options=options, base=base)
    search = find_largest_batch("hungry", suite_trials(order, Observer()), Bounds(start=20))
    assert (search.largest, search.problem) == (24, None)
    assert list(search.trials) == [16, 32, 24]
    assert {run.read_plan().labels["batch_size"] for run in all_runs(base.runs)} == {"16", "32", "24"}


def test_another_failure_ends_the_search_and_is_not_taken_for_a_lack_of_memory(tmp_path):
    path = tmp_path / "scaling.yaml"
    [search] = find_and_save(["hungry"], Measuring(tmp_path, 10, "breaks"), path)
    assert search.largest == 8
    assert search.problem.startswith("batch size 16 failed: ")
    assert [o.batch_size for o in read_scaling(str(path))["hungry"].observations] == [8]


def below(limit: int, tried: list[int] | None = None):
    def try_batch(name: str, size: int) -> Trial:
        if tried is not None:
            tried.append(size)
        if size <= limit:
            return Trial(fits=True, memory_bytes=size * MIB, perf=float(size))
        return Trial(fits=False, reason=Reason.OUT_OF_MEMORY)

    return try_batch


def test_no_more_trials_than_allowed():
    tried: list[int] = []
    search = find_largest_batch("b", below(10_000, tried), Bounds(trials=4))
    assert tried == [8, 16, 32, 64] == list(search.trials)
    assert search.largest == 64
    assert "gave up after 4 trials" in search.problem


def test_the_last_trial_may_be_the_one_that_settles_it():
    assert find_largest_batch("b", below(8), Bounds(trials=2)).problem is None


def test_nothing_fits():
    search = find_largest_batch("b", below(0), Bounds(start=2))
    assert (search.largest, search.problem, list(search.trials)) == (None, None, [2, 1])
    assert [o.memory_bytes for o in search.observations()] == [None, None]


def test_each_search_is_kept_before_the_next_begins(tmp_path):
    path = tmp_path / "s.yaml"
    seen: list[list[str]] = []

    def try_batch(name: str, size: int) -> Trial:
        seen.append(list(read_scaling(str(path))) if path.exists() else [])
        if name == "c":
            raise KeyboardInterrupt
        return below(0)(name, size)

    with pytest.raises(KeyboardInterrupt):
        find_and_save(["a", "b", "c"], try_batch, path, bounds=Bounds(start=1))
    assert seen == [[], ["a"], ["a", "b"]]


def test_whoever_watches_is_told(tmp_path):
    told: list[object] = []
    find_and_save(
        ["a"],
        below(8),
        tmp_path / "s.yaml",
        on_trial=lambda name, size, trial: told.append((name, size, trial.fits)),
        on_saved=lambda search, saved: told.append((search.largest, saved.observations)),
    )
    assert told == [("a", 8, True), ("a", 16, False), (8, 2)]


def test_one_of_several_processes_without_memory_is_a_lack_of_memory():
    benchmark = Benchmark(name="b", workload=Script(path="x", args=(), cwd="/", python=""), source="test")
    launches = (
        failed_launch(job="b.D0"),
        Launch(job="b.D1", status=Status.FAILED, reason=Reason.OUT_OF_MEMORY),
    )
    crashed = Result(benchmark=benchmark, status=Status.FAILED, reason=Reason.CRASHED, launches=launches)
    assert trial_of(crashed).reason is Reason.OUT_OF_MEMORY
    assert not trial_of(crashed).failed
    kept = observation(crashed, 16)
    assert kept is not None
    assert (kept.batch_size, kept.memory_bytes) == (16, None)


def test_the_performance_of_ranks_is_what_they_did_together():
    ranks = [measured("rate", 10.0 + n, labels={"rank": str(n)}) for n in (0, 1)]
    whole = measured("rate", 21.0, labels={"ranks": "2"})
    peak = measured("memory.peak_rss", 5.0 * MIB, unit="B")
    done = Launch(job="b.0", status=Status.OK, measurements=(*ranks, whole, peak))
    assert trial_of(result("b", done)).perf == 21.0
    kept = observation(result("b", done), 8)
    assert kept is not None
    assert (kept.perf, kept.memory_bytes) == (21.0, 5 * MIB)


def test_what_did_not_run_at_all_tells_nothing():
    benchmark = Benchmark(name="b", workload=Script(path="x", args=(), cwd="/", python=""), source="test")
    skipped = Result(benchmark=benchmark, status=Status.SKIPPED, reason=Reason.NOT_READY, detail="not installed")
    search = find_largest_batch("b", lambda name, size: trial_of(skipped))
    assert search.problem == "batch size 8 failed: not installed"
    assert search.observations() == []
