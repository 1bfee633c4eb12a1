"""A run being made, interrupted and resumed: what is repeated, what is kept, what it is called in the end."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from benchwright.core.benchmark import Benchmark, Command, Placement
from benchwright.core.errors import Interrupted, InvalidInput
from benchwright.core.job import Job, Outcome
from benchwright.core.run import Run
from benchwright.core.status import Reason, Status
from benchwright.executors.fake import FakeExecutor
from benchwright.executors.observer import Observer
from benchwright.options.table import Options
from benchwright.results.after_run import exit_code, summaries_of
from benchwright.runner.measure import measure
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.known_runs import all_runs
from benchwright.runs.resume import NEWEST
from benchwright.runs.run_folder import RunFolder

STEPS = [0.1, 0.2, 0.3]


def benchmark(name: str = "b", **placement: int) -> Benchmark:
    workload = Command(argv=("true",), cwd="/")
    return Benchmark(name=name, workload=workload, source="test", placement=Placement(**placement))


class InterruptAt(Observer):
    """Ctrl-C, just before a launch would start."""

    def __init__(self, number: int) -> None:
        self.number = number

    def on_launch(self, number: int, total: int, jobs: Sequence[Job]) -> None:
        if number == self.number:
            os.kill(os.getpid(), signal.SIGINT)


class Making:
    """Makes runs below one base folder, each with an executor of its own."""

    def __init__(self, folder: Path) -> None:
        self.base = BaseFolder(folder)
        self.ran: list[str] = []

    def __call__(
        self,
        *benchmarks: Benchmark,
        executor: FakeExecutor | None = None,
        resume: str | None = None,
        observer: Observer | None = None,
        **options: int,
    ) -> Run:
        fake = executor or FakeExecutor({b.name: STEPS for b in benchmarks})
        try:
            return measure(
                benchmarks,
                Options(**options),
                base=self.base,
                name="x",
                executor=fake,
                resume=resume,
                observer=observer,
            )
        finally:
            self.ran = fake.ran

    @property
    def folder(self) -> RunFolder:
        return all_runs(self.base.runs)[0]


@pytest.fixture
def make(tmp_path: Path) -> Making:
    return Making(tmp_path)


def streams(folder: RunFolder) -> dict[str, str]:
    return {p.name: p.read_text() for p in folder.path.glob("*.data")}


def test_a_run_that_is_interrupted_while_it_is_planned_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: FakeExecutor) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(FakeExecutor, "machine", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Making(tmp_path)(benchmark())
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_resumed_run_repeats_only_what_had_not_completed(make: Making) -> None:
    with pytest.raises(Interrupted, match="--resume="):
        make(benchmark(), repeat=4, observer=InterruptAt(3))
    assert make.ran == ["b.R0.D0", "b.R1.D0"]
    before = streams(make.folder)
    body = make.folder.read_run()
    assert body is not None
    assert (body["status"], body["ended"]) == ("interrupted", None)
    run = make(benchmark(), repeat=4, resume=NEWEST)
    assert make.ran == ["b.R2.D0", "b.R3.D0"]
    assert run.status is Status.OK
    assert [x.launch for x in run.results[0].launches] == [0, 1, 2, 3]
    assert {name: text for name, text in streams(make.folder).items() if name in before} == before


def test_jobs_that_measure_together_are_repeated_together(make: Making) -> None:
    """Half of a launch that measured under the load of the other half is no measurement of both."""
    pair = benchmark(jobs=2)
    with pytest.raises(Interrupted):
        make(pair, repeat=2, observer=InterruptAt(2))
    (make.folder.path / "b.R0.1.data").unlink()
    make(pair, repeat=2, resume=NEWEST)
    assert make.ran == ["b.R0.0", "b.R0.1", "b.R1.0", "b.R1.1"]


def test_what_an_unfinished_launch_left_is_no_part_of_its_repetition(make: Making) -> None:
    with pytest.raises(Interrupted):
        make(benchmark(), repeat=2, observer=InterruptAt(2))
    partial = '{"event": "metric", "name": "speed", "values": [1.0]}\n'
    (make.folder.path / "b.R1.D0.data").write_text(partial)
    make(benchmark(), repeat=2, resume=NEWEST)
    found = streams(make.folder)
    assert found["b.R1.D0.interrupted-1.data"] == partial
    assert json.loads(found["b.R1.D0.data"].splitlines()[0])["event"] == "stream"


def test_a_launch_that_was_stopped_from_outside_can_be_repeated(make: Making) -> None:
    stopped = FakeExecutor({"b": STEPS}, outcomes={"b": Outcome(job="", stopped=True)})
    assert make(benchmark(), executor=stopped).status is Status.INTERRUPTED
    assert make(benchmark(), resume=NEWEST).status is Status.OK
    assert make.ran == ["b.D0"]


def test_a_run_that_another_process_is_making_is_not_the_one_to_resume(make: Making) -> None:
    with pytest.raises(Interrupted):
        make(benchmark(), repeat=2, observer=InterruptAt(2))
    with make.folder.locked(), pytest.raises(InvalidInput, match="no unfinished run"):
        make(benchmark(), repeat=2, resume=NEWEST)


def test_a_warm_up_launch_that_fails_does_not_fail_the_benchmark(make: Making) -> None:
    class WarmupFails(FakeExecutor):
        def _outcome(self, job: Job) -> Outcome:
            return Outcome(job=job.id, exit_code=1) if job.warmup else super()._outcome(job)

    run = make(benchmark(), executor=WarmupFails({"b": STEPS}), warmup_runs=1, repeat=2)
    (result,) = run.results
    assert [x.status for x in result.launches] == [Status.FAILED, Status.OK, Status.OK]
    assert result.status is Status.OK
    assert {s.launches for s in summaries_of(run)["b"]} == {2}


def test_one_failed_launch_fails_the_benchmark_but_not_the_others(make: Making) -> None:
    fake = FakeExecutor({"a": STEPS, "b": STEPS}, outcomes={"a": Outcome(job="", exit_code=3)})
    run = make(benchmark("a"), benchmark("b"), executor=fake, repeat=2)
    failed, fine = run.results
    assert (failed.status, failed.reason, fine.status) == (Status.FAILED, Reason.CRASHED, Status.OK)
    assert (run.status, exit_code(run)) == (Status.FAILED, 1)
    assert [len(r.launches) for r in run.results] == [2, 2]


def test_a_run_in_which_everything_was_skipped_is_no_success(make: Making) -> None:
    run = make(benchmark(needs_devices=8))
    assert run.results[0].reason is Reason.LACKS_DEVICES
    assert (run.status, exit_code(run)) == (Status.SKIPPED, 3)


def test_the_overlap_of_a_benchmark_is_that_of_its_worst_launch(make: Making) -> None:
    class OneApart(FakeExecutor):
        """In the second launch one of the two jobs measures a day later."""

        def run(self, jobs: Sequence[Job], listener: Observer) -> list[Outcome]:  # type: ignore[override]
            outcomes = super().run(jobs, listener)
            for job in jobs:
                moved = [json.loads(line) for line in Path(job.stream).read_text().splitlines()]
                for event in moved:
                    event["t"] = 86_400_000_000_000 if job.id == "b.R1.1" else 0
                Path(job.stream).write_text("".join(json.dumps(event) + "\n" for event in moved))
            return outcomes

    run = make(benchmark(jobs=2), executor=OneApart({"b": STEPS}), repeat=2)
    assert run.results[0].overlap == 0.0


def test_the_barrier_of_a_launch_is_empty_when_it_begins_and_gone_when_the_run_has_ended(make: Making) -> None:
    seen: list[list[str]] = []

    class Look(Observer):
        def on_launch(self, number: int, total: int, jobs: Sequence[Job]) -> None:
            for job in jobs:
                assert job.barrier is not None
                seen.append(os.listdir(job.barrier.folder))
                (Path(job.barrier.folder) / f"ready-{job.barrier.rank}").touch()
            if number == 2 and len(seen) == 4:
                os.kill(os.getpid(), signal.SIGINT)

    look = Look()
    with pytest.raises(Interrupted):
        make(benchmark(jobs=2), repeat=2, observer=look)
    # As if it had been killed there, before it could tidy up.
    left = make.folder.path / ".barrier" / "b.R1"
    left.mkdir(parents=True)
    (left / "go").touch()
    make(benchmark(jobs=2), repeat=2, observer=look, resume=NEWEST)
    assert seen == [[], ["ready-0"]] * 3
    assert not (make.folder.path / ".barrier").exists()
