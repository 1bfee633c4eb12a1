"""What runs around launches: in which order, and what becomes of launches if it fails."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from builders import benchmark

from benchwright.core.benchmark import Benchmark, Command, Hooks
from benchwright.core.errors import Interrupted
from benchwright.core.job import Job, Outcome
from benchwright.core.run import Run
from benchwright.core.status import Reason, Status
from benchwright.executors.base import Executor, Listener
from benchwright.executors.fake import FakeExecutor
from benchwright.executors.observer import Observer
from benchwright.kinds.registry import kind_of
from benchwright.options.table import Options
from benchwright.runner.measure import measure
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.read_run import read_run
from benchwright.runs.run_folder import RunFolder


def command(*words: str) -> Command:
    return Command(argv=words, cwd="/")


class Fake(FakeExecutor):
    """Jobs whose id is in `failing` end with exit code 3."""

    def __init__(self, *failing: str) -> None:
        super().__init__({"a": [0.1], "b": [0.1]})
        self.failing = failing

    def _outcome(self, job: Job) -> Outcome:
        if job.id in self.failing:
            return Outcome(job=job.id, exit_code=3)
        return super()._outcome(job)


def made(folder: Path, *benchmarks: Benchmark, executor: Fake, **fields: object) -> Run:
    options = Options(repeat=2, interleave=True)
    return measure(benchmarks, options, base=BaseFolder(folder), name="x", executor=executor, **fields)  # type: ignore[arg-type]


def hooked(name: str = "a", **more: Command) -> Benchmark:
    hooks = {"setup": command("make"), "prepare": command("sync"), "cleanup": command("rm", "x")}
    return benchmark(name, hooks=Hooks(**(hooks | more)))


def test_setup_once_prepare_before_each_launch_and_cleanup_once(tmp_path: Path) -> None:
    executor = Fake()
    run = made(tmp_path, hooked("a"), hooked("b"), executor=executor)
    assert run.ok
    assert executor.ran == [
        "setup-1",
        *("a.R0.D0.prepare", "a.R0.D0", "b.R0.D0.prepare", "b.R0.D0"),
        *("b.R1.D0.prepare", "b.R1.D0", "a.R1.D0.prepare", "a.R1.D0"),
        "cleanup-1",
    ]
    assert not [path.name for path in Path(run.folder).iterdir() if "prepare" in path.name or "setup" in path.name]


def test_a_setup_of_its_own_is_run_for_each_benchmark_before_the_first_launch(tmp_path: Path) -> None:
    executor = Fake()
    made(tmp_path, hooked("a"), hooked("b", setup=command("make", "b")), executor=executor)
    assert executor.ran[:3] == ["setup-1", "setup-2", "a.R0.D0.prepare"]


def test_a_launch_whose_prepare_failed_is_a_failure_with_its_reason_and_the_others_count(tmp_path: Path) -> None:
    executor = Fake("a.R1.D0.prepare")
    run = made(tmp_path, hooked("a"), executor=executor)
    first, second = run.result("a").launches
    assert first.status is Status.OK
    assert (second.status, second.reason, second.detail) == (
        Status.FAILED,
        Reason.NOT_READY,
        "--prepare failed (exit code 3): sync",
    )
    assert "a.R1.D0" not in executor.ran
    assert executor.ran[-1] == "cleanup-1"
    assert read_run(RunFolder(Path(run.folder)), kind_of).results == run.results


def test_a_failed_setup_fails_every_launch_it_was_for_and_no_other(tmp_path: Path) -> None:
    executor = Fake("setup-1")
    run = made(tmp_path, hooked("a"), hooked("b", setup=command("make", "b")), executor=executor)
    assert [x.detail for x in run.result("a").launches] == ["--setup failed (exit code 3): make"] * 2
    assert run.result("b").status is Status.OK
    assert [job for job in executor.ran if job.startswith("a.")] == []
    assert executor.ran[-1] == "cleanup-1"


def test_a_failed_cleanup_is_noted_and_costs_no_result(tmp_path: Path) -> None:
    run = made(tmp_path, hooked("a"), executor=Fake("cleanup-1"))
    assert run.ok
    assert any("--cleanup failed (exit code 3): rm x" in note.text for note in run.notes)


class InterruptAt(Observer):
    def on_launch(self, number: int, total: int, jobs: Sequence[Job]) -> None:
        if number == 2:
            os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupted_run_is_cleaned_up_by_an_executor_that_was_not_stopped(tmp_path: Path) -> None:
    executor, another = Fake(), Fake()
    opened: AbstractContextManager[Executor] = nullcontext(another)
    with pytest.raises(Interrupted):
        made(tmp_path, hooked("a"), executor=executor, observer=InterruptAt(), another=lambda: opened)
    assert executor.ran == ["setup-1", "a.R0.D0.prepare", "a.R0.D0"]
    assert another.ran == ["cleanup-1"]


class Crash(Fake):
    def run(self, jobs: Sequence[Job], listener: Listener) -> list[Outcome]:
        if jobs and jobs[0].id == "a.R0.D0":
            raise RuntimeError
        return super().run(jobs, listener)


def test_a_run_that_breaks_off_is_cleaned_up(tmp_path: Path) -> None:
    executor = Crash()
    with pytest.raises(RuntimeError):
        made(tmp_path, hooked("a"), executor=executor)
    assert executor.ran[-1] == "cleanup-1"


def test_a_resumed_run_with_nothing_left_to_do_runs_no_hooks(tmp_path: Path) -> None:
    whole = made(tmp_path, hooked("a"), executor=Fake())
    executor = Fake()
    made(tmp_path, hooked("a"), executor=executor, resume=whole.id)
    assert executor.ran == []
