"""How many launches `--repeat auto` makes, and what the run is then said to be."""

from __future__ import annotations

import json
import os
import random
import re
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from builders import benchmark

from benchwright.core.benchmark import Benchmark
from benchwright.core.comparison import Verdict
from benchwright.core.decision import Decision
from benchwright.core.errors import Interrupted
from benchwright.core.job import Job, Outcome
from benchwright.core.metric import Direction, MetricSpec
from benchwright.core.run import Run
from benchwright.core.status import Status
from benchwright.core.stop_rule import StopRule, parse_repeat
from benchwright.executors.base import Listener
from benchwright.executors.fake import FakeExecutor
from benchwright.executors.observer import Observer
from benchwright.kinds.registry import kind_of
from benchwright.options.table import Options
from benchwright.results.compare import compare_commands
from benchwright.runner.measure import measure
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.read_run import read_run
from benchwright.runs.run_folder import RunFolder

SPEED = (MetricSpec(name="speed", pattern="x"),)


class Noisy(FakeExecutor):
    """Every launch has one value of each benchmark, that differs by `spread`; `took_s` each."""

    def __init__(self, spread: float, *, took_s: float = 0.1, seed: int = 1) -> None:
        super().__init__({"a": [1.0], "b": [1.0]})
        self.spread, self.took_s = spread, took_s
        self.random = random.Random(seed)

    def run(self, jobs: Sequence[Job], listener: Listener) -> list[Outcome]:
        self._samples = {name: [1 + self.random.gauss(0, self.spread)] for name in self._samples}
        return super().run(jobs, listener)

    def _outcome(self, job: Job) -> Outcome:
        return Outcome(job=job.id, exit_code=0, duration_s=self.took_s)


def made(folder: Path, executor: FakeExecutor, *names: str, rule: str = "auto", **fields: object) -> Run:
    enough = parse_repeat(rule)
    assert isinstance(enough, StopRule)
    options = Options(repeat=enough.max_steps or 1, enough=enough, interleave=len(names) > 1)
    benchmarks = [benchmark(name, metrics=SPEED) for name in names]
    return measure(benchmarks, options, base=BaseFolder(folder), name="x", executor=executor, **fields)  # type: ignore[arg-type]


def counts(run: Run) -> list[int]:
    return [len(r.launches) for r in run.results]


def test_quiet_launches_are_enough_at_the_first_look(tmp_path: Path) -> None:
    run = made(tmp_path, Noisy(0.001), "a")
    assert (run.status, counts(run)) == (Status.OK, [8])
    assert not run.notes or all(note.kind != "limit" for note in run.notes)


def test_noisy_launches_are_repeated_until_the_interval_is_narrow(tmp_path: Path) -> None:
    (count,) = counts(made(tmp_path, Noisy(0.03), "a"))
    assert 12 <= count < 100
    assert counts(made(tmp_path, Noisy(0.03), "a", rule="10%")) == [8]


def test_a_limit_that_comes_first_is_said(tmp_path: Path) -> None:
    run = made(tmp_path, Noisy(0.5), "a")
    assert counts(run) == [100]
    assert "launches ended after 100 launches, before the interval was within ± 2 %" in {n.text for n in run.notes}
    slow = made(tmp_path, Noisy(0.5, took_s=100), "a")
    assert counts(slow) == [6]  # however long they take: fewer have no interval
    assert any("after 5 min" in note.text for note in slow.notes)


def test_seconds_are_those_of_the_launches(tmp_path: Path) -> None:
    assert counts(made(tmp_path, Noisy(0.5, took_s=1), "a", rule="3s")) == [3]


def test_alternating_benchmarks_get_the_same_number_and_whole_blocks(tmp_path: Path) -> None:
    run = made(tmp_path, Noisy(0.01), "a", "b")
    assert counts(run)[0] == counts(run)[1] < 100
    blocks = [{x.block for x in r.launches} for r in run.results]
    assert blocks[0] == blocks[1] == set(range(counts(run)[0]))


class Parts:
    """A run takes what is quiet first, then what is not: see `SharedWork`."""

    everything = tuple(benchmark(name, metrics=SPEED) for name in "abcd")

    def __init__(self) -> None:
        self._left = [self.everything[2:], ()]

    def take(self, stopped: Callable[[], bool]) -> tuple[Benchmark, ...]:
        return self._left.pop(0)

    def end(self, run: str, results: Sequence[str], *, lost: bool) -> None:
        assert not lost


class NoisyLater(Noisy):
    def run(self, jobs: Sequence[Job], listener: Listener) -> list[Outcome]:
        self.spread = 0.001 if jobs[0].benchmark in "ab" else 0.03
        return super().run(jobs, listener)


def test_each_part_of_a_run_that_grows_gets_as_many_launches_as_it_needs(tmp_path: Path) -> None:
    executor = NoisyLater(0.001)
    executor._samples = {name: [1.0] for name in "abcd"}
    a, b, c, d = counts(made(tmp_path, executor, "a", "b", shared=Parts()))
    assert (a, b) == (8, 8)
    assert c == d > 8


def test_each_benchmark_of_its_own_is_launched_as_often_as_it_needs(tmp_path: Path) -> None:
    enough = parse_repeat("auto")
    assert isinstance(enough, StopRule)
    executor = Noisy(0.001)
    run = measure(
        [benchmark("a", metrics=SPEED), benchmark("c", metrics=SPEED)],
        Options(repeat=100, enough=enough),
        base=BaseFolder(tmp_path),
        name="x",
        executor=executor,
    )
    assert counts(run) == [8, 8]  # c fails each time: more launches would tell nothing


def test_launches_that_were_not_needed_are_no_part_of_the_run(tmp_path: Path) -> None:
    run = made(tmp_path, Noisy(0.001), "a")
    folder = RunFolder(Path(run.folder))
    assert read_run(folder, kind_of).results == run.results
    assert len(json.loads((folder.path / "jobs.json").read_text())["launches"]) == 8
    (folder.path / "jobs.json").unlink()
    assert counts(read_run(folder, kind_of)) == [8]


class InterruptAt(Observer):
    def on_launch(self, number: int, total: int, jobs: Sequence[Job]) -> None:
        if number == 5:
            os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupted_run_is_resumed_to_where_it_would_have_ended(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        made(tmp_path, Noisy(0.001), "a", observer=InterruptAt())
    executor = Noisy(0.001)
    run = made(tmp_path, executor, "a", resume="newest")
    assert (counts(run), len(executor.ran)) == ([8], 4)


class Slower(Noisy):
    """Of two alternating benchmarks, `b` takes `factor` times as long."""

    def __init__(self, spread: float, factor: float, **more: float) -> None:
        super().__init__(spread, **more)  # type: ignore[arg-type]
        self.factor = factor

    def run(self, jobs: Sequence[Job], listener: Listener) -> list[Outcome]:
        self._samples = {
            "a": [1 + self.random.gauss(0, self.spread)],
            "b": [self.factor * (1 + self.random.gauss(0, self.spread))],
        }
        return FakeExecutor.run(self, jobs, listener)


TIME = (MetricSpec(name="time", pattern="x", direction=Direction.LOWER),)


def decided(folder: Path, executor: FakeExecutor, decision: Decision) -> Run:
    options = Options(repeat=decision.most_launched, interleave=True, decision=decision)
    both = [benchmark(name, metrics=TIME) for name in "ab"]
    return measure(both, options, base=BaseFolder(folder), name="x", executor=executor)


def test_a_clear_verdict_ends_the_launches_and_is_the_same_when_read_back(tmp_path: Path) -> None:
    run = decided(tmp_path, Slower(0.01, 1.2), Decision())
    assert counts(run) == [8, 8]
    (comparison,) = compare_commands(run)
    assert {e.metric: e.verdict for e in comparison.effects}["time"] is Verdict.REGRESSED
    again = read_run(RunFolder(Path(run.folder)), kind_of)
    assert again.decision == Decision()
    assert compare_commands(again) == [comparison]
    assert not any(note.kind == "limit" for note in run.notes)


class Wandering(Slower):
    """Its memory is another one in every launch."""

    def run(self, jobs: Sequence[Job], listener: Listener) -> list[Outcome]:
        outcomes = super().run(jobs, listener)
        for job in jobs:
            stream = Path(job.stream)
            used = int((1 << 30) * (1 + abs(self.random.gauss(0, 0.5))))
            stream.write_text(re.sub(r'"max_rss_bytes": ?\d+', f'"max_rss_bytes":{used}', stream.read_text()))
        return outcomes


def test_what_is_compared_beside_prolongs_nothing(tmp_path: Path) -> None:
    run = decided(tmp_path, Wandering(0.01, 1.2), Decision())
    assert counts(run) == [8, 8]
    (comparison,) = compare_commands(run)
    verdicts = {e.metric: (e.verdict, e.beside) for e in comparison.effects}
    assert verdicts == {
        "time": (Verdict.REGRESSED, False),
        "memory.peak_rss": (Verdict.INCONCLUSIVE, True),
        "process.cpu_time": (Verdict.SAME, True),
        "process.duration": (Verdict.SAME, True),
    }


def test_the_same_program_is_launched_until_that_is_known(tmp_path: Path) -> None:
    run = decided(tmp_path, Slower(0.006, 1.0), Decision())
    (comparison,) = compare_commands(run)
    assert {e.metric: e.verdict for e in comparison.effects}["time"] is Verdict.SAME
    assert 8 < counts(run)[0] < 40


def test_a_verdict_that_does_not_come_ends_with_the_pairs_or_the_budget(tmp_path: Path) -> None:
    run = decided(tmp_path, Slower(0.2, 1.0), Decision(most_blocks=12))
    assert counts(run) == [12, 12]
    assert any(str(n).startswith("no clear verdict on time (12 pairs); use a larger --repeat") for n in run.notes)
    hasty = decided(tmp_path, Slower(0.2, 1.0, took_s=10), Decision(budget_s=100))
    assert counts(hasty) == [5, 5]
