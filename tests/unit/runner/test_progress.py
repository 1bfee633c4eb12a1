"""Which events become lines, where there is a panel and where there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from builders import MACHINE, benchmark, failed_launch, job, launch, measurement
from processes import wait_for

from benchwright.core.job import Job, JobTurn
from benchwright.core.run import Launch, Plan
from benchwright.core.status import Reason
from benchwright.runner import progress as progress_module
from benchwright.runner.progress import Progress, headline


class Paper:
    """Keeps what is shown."""

    def __init__(self, live: bool) -> None:
        self.live = live
        self.size = (79, 20)
        self.said: list[str] = []
        self.drawn: list[list[str]] = []
        self.closed = False

    def draw(self, lines: Sequence[str]) -> None:
        self.drawn.append(list(lines))

    def say(self, text: str) -> None:
        self.said.append(text)

    def echo(self, text: str) -> None:
        self.said.append(text)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is too short to be shown."""
    for name in ("_FIRST_DRAW_S", "_FIRST_WORD_S", "_SILENCE_S"):
        monkeypatch.setattr(progress_module, name, -1.0)


def make_run(progress: Progress, names: Sequence[str], ending: Callable[[str], Launch], repeat: int = 1) -> None:
    """A run of these benchmarks, as `runner.run` tells of it."""
    jobs = [job(id=f"{name}.R{i}", benchmark=name) for i in range(repeat) for name in names]
    plan = Plan(benchmarks=tuple(map(benchmark, names)), launches=tuple((each,) for each in jobs))
    with progress:
        progress.on_run(Path("/runs/x"), plan, MACHINE)
        for number, each in enumerate(jobs, start=1):
            progress.on_launch(number, len(jobs), [each])
            progress.on_recorded(number, len(jobs), [ending(each.id)])


def models_with_turns(count: int) -> tuple[list[Job], Plan]:
    jobs = [job(id=str(n), benchmark=f"m{n}", turn=JobTurn(folder="/t", place=n)) for n in range(count)]
    launches = tuple((each,) for each in jobs)
    return jobs, Plan(benchmarks=tuple(benchmark(each.benchmark) for each in jobs), launches=launches)


def good(job_id: str) -> Launch:
    return launch(measurement(100.0), job=job_id, duration_s=2.0)


def bad(job_id: str) -> Launch:
    return failed_launch(job=job_id, reason=Reason.OUT_OF_MEMORY, duration_s=2.0)


@pytest.mark.usefixtures("hurried")
def test_a_panel_is_joined_by_each_result_once_it_is_complete() -> None:
    paper = Paper(live=True)
    make_run(Progress(paper), ["a", "b"], good, repeat=6)
    assert paper.said == ["a: 100 items/s ± 0.0 % (6 launches)", "b: 100 items/s ± 0.0 % (6 launches)"]
    assert paper.closed


@pytest.mark.usefixtures("hurried")
def test_the_only_result_is_left_to_the_report() -> None:
    paper = Paper(live=True)
    make_run(Progress(paper), ["a"], good, repeat=2)
    assert paper.said == []


@pytest.mark.usefixtures("hurried")
def test_without_a_panel_each_launch_has_its_line_and_the_benchmark_one() -> None:
    paper = Paper(live=False)
    make_run(Progress(paper), ["a"], good, repeat=2)
    assert paper.said == [
        "[1/2] a.R0: 100 items/s, 2.00 s",
        "[2/2] a.R1: 100 items/s, 2.00 s",
        "a: 100 items/s (2 launches)",
    ]


@pytest.mark.usefixtures("hurried")
def test_models_that_start_up_while_others_are_measured_are_counted_one_by_one() -> None:
    jobs, plan = models_with_turns(10)
    paper = Paper(live=False)
    with (progress := Progress(paper)):
        progress.on_run(Path("/runs/x"), plan, MACHINE)
        progress.on_launch(1, 1, jobs)
        for each in jobs:
            progress.on_started(each.id, 1)
            progress.on_recorded(1, 1, [good(each.id)])
    told = [text.partition(" ")[0] for text in paper.said if "items/s" in text]
    assert told == [f"[{n}/10]" for n in range(1, 11)]


@pytest.mark.usefixtures("hurried")
def test_of_models_that_wait_for_their_start_none_is_shown_and_the_time_left_is_told_from_those_done() -> None:
    jobs, plan = models_with_turns(10)
    paper = Paper(live=True)
    with (progress := Progress(paper)):
        progress.on_run(Path("/runs/x"), plan, MACHINE)
        progress.on_launch(1, 1, jobs)
        for each in jobs[:7]:
            progress.on_started(each.id, 1)
        for each in jobs[:5]:
            progress.on_recorded(1, 1, [good(each.id)])
        wait_for(lambda: bool(paper.drawn) and paper.drawn[-1][0].startswith("[6/10] m5, m6"))
    assert "m7" not in " ".join(paper.drawn[-1])
    assert "about 5 s left" in paper.drawn[-1][0]  # half of them took less than that


def test_without_a_panel_each_of_several_results_has_its_line_once_the_run_takes_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("benchwright.runner.progress._FIRST_WORD_S", 0.0)
    paper = Paper(live=False)
    make_run(Progress(paper), ["a", "b", "c"], good)
    assert [text.partition(":")[0] for text in paper.said if "items/s" in text] == [
        "[1/3] a.R0",
        "[2/3] b.R0",
        "[3/3] c.R0",
    ]


@pytest.mark.parametrize("live", [True, False])
def test_quick_launches_say_nothing_and_failures_always_do(live: bool) -> None:
    fine, failing, alone = Paper(live), Paper(live), Paper(live)
    make_run(Progress(fine), ["a", "b"], good)
    make_run(Progress(failing), ["a"], bad, repeat=2)
    make_run(Progress(alone), ["a"], bad)  # the report follows at once
    assert (fine.said, alone.said) == ([], [])
    assert failing.said == [f"[{n}/2] a.R{n - 1}: FAILED after 2.00 s: out of memory" for n in (1, 2)]


def test_quiet_shows_problems_only() -> None:
    paper = Paper(live=False)
    quiet = Progress(paper, quiet=True)
    quiet.on_step("torch", "installing")
    quiet.on_note("voir is added")
    quiet.on_trouble("the disk is full")
    make_run(quiet, ["a"], bad)
    assert paper.said == ["benchwright: the disk is full"]


def test_a_launch_that_takes_a_while_is_announced_and_a_silence_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_FIRST_WORD_S", "_LONG_SILENCE_S"):
        monkeypatch.setattr(progress_module, name, 0.2)
    paper = Paper(live=False)
    each = job(id="a.D0", benchmark="a")
    with Progress(paper) as progress:
        progress.on_run(Path("/x"), Plan(benchmarks=(benchmark("a"),), launches=((each,),)), MACHINE)
        progress.on_launch(1, 1, [each])
        assert wait_for(lambda: len(paper.said) > 1)
    assert paper.said[0] == "[1/1] a.D0: started"
    assert paper.said[1].startswith("[1/1] a.D0: running for ")


@pytest.mark.usefixtures("hurried")
def test_a_step_shows_the_last_line_of_its_log(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("Resolved 12 packages\nDownloading torch (797.4MiB)\n")
    paper = Paper(live=True)
    with Progress(paper) as progress:
        progress.on_step("torch", "installing", str(tmp_path / "log"))
        assert wait_for(lambda: bool(paper.drawn))
        progress.on_step_done("torch", "built in 2.5 s")
    assert paper.drawn[0] == ["torch: installing  0:00  Downloading torch (797.4MiB)"]
    assert paper.said == ["torch: built in 2.5 s"]


@pytest.mark.usefixtures("hurried")
def test_drawing_becomes_rare_while_something_is_measured() -> None:
    progress = Progress(Paper(live=True))
    each = job(id="a.D0", benchmark="a")
    progress.on_run(Path("/x"), Plan(benchmarks=(benchmark("a"),), launches=((each,),)), MACHINE)
    progress.on_launch(1, 1, [each])
    waits = {}
    for phase in ("importing", "building", "warm-up", "measuring", "running"):
        progress._running["a.D0"].phase = phase
        waits[phase] = progress._draw()
    progress.__exit__()
    assert waits == {"importing": 0.25, "building": 0.25, "warm-up": 0.25, "measuring": 1.0, "running": 1.0}


def test_a_resumed_run_counts_what_was_done_before() -> None:
    paper = Paper(live=False)
    progress = Progress(paper, verbose=True)
    jobs = [job(id=f"a.R{i}", benchmark="a") for i in range(2)]
    progress.on_run(Path("/x"), Plan(benchmarks=(benchmark("a"),), launches=tuple((j,) for j in jobs)), MACHINE)
    progress.on_recorded(1, 2, [good("a.R0")])  # never launched: its stream was complete
    assert progress._schedule is not None
    assert progress._schedule.left_s(2, 1.0, None) is None
    progress.__exit__()


@pytest.mark.parametrize("method", ["total", "average_aggregate"])
def test_a_number_that_needs_the_workers_is_left_to_the_report(method: str) -> None:
    needs = measurement(5.0, 7.0, metric="speed", unit="items/s", source="log", aggregate=method)
    assert headline([launch(needs)]) == "ok"
    plain = measurement(5.0, 7.0, metric="speed", unit="items/s", source="log")
    assert "6" in headline([launch(needs, plain)])


def test_a_step_that_is_worth_a_word_only_if_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "_FIRST_WORD_OF_STEP_S", 0.3)
    paper = Paper(live=False)
    with Progress(paper) as progress:
        progress.begin("getting ready")
        progress.on_run(Path("/x"), Plan(benchmarks=(), launches=()), MACHINE)  # it was quick
        progress.begin("saving the results")
        assert wait_for(lambda: bool(paper.said))
    assert paper.said == ["saving the results"]


@pytest.mark.usefixtures("hurried")
def test_nothing_is_drawn_while_others_write_to_the_terminal() -> None:
    paper = Paper(live=True)
    with Progress(paper) as progress:
        progress.begin("getting ready")
        assert wait_for(lambda: bool(paper.drawn))
        with progress.aside():
            drawn, closed = len(paper.drawn), paper.closed
            progress_module.time.sleep(0.8)
            assert (len(paper.drawn), closed) == (drawn, True)


@pytest.mark.usefixtures("hurried")
def test_a_result_that_cannot_be_put_into_words_does_not_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> str:
        raise ZeroDivisionError("odd numbers")

    monkeypatch.setattr(progress_module, "headline", broken)
    paper = Paper(live=False)
    make_run(Progress(paper), ["a"], good)
    assert paper.said == ["[1/1] a: ZeroDivisionError: odd numbers"]


@pytest.mark.parametrize(("up_to", "words"), [(False, ", about 5 s left"), (True, "[2, at most 3]")])
@pytest.mark.usefixtures("hurried")
def test_no_time_is_promised_where_launches_may_be_left_out(up_to: bool, words: str) -> None:
    paper = Paper(live=True)
    jobs = [job(id=f"a.R{i}", benchmark="a") for i in range(3)]
    progress = Progress(paper)
    plan = Plan(benchmarks=(benchmark("a"),), launches=tuple((j,) for j in jobs), up_to=up_to)
    progress.on_run(Path("/x"), plan, MACHINE)
    progress.on_launch(1, 3, jobs[:1])
    progress.on_recorded(1, 3, [good("a.R0")])
    progress.on_launch(2, 3, jobs[1:2])
    progress._draw()
    progress.__exit__()
    assert words in paper.drawn[-1][0]
    assert ("left" in paper.drawn[-1][0]) != up_to
