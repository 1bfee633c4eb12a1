"""The panel fits any width, and its estimates come from what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import benchmark, job

from benchwright.core.run import Plan
from benchwright.report.text.one_line import columns_of
from benchwright.runner.progress_panel import (
    RunningJob,
    Schedule,
    head_line,
    job_lines,
    panel_lines,
    roughly,
    short_names,
    sparkline,
)


def schedule(*names: str) -> Schedule:
    launches = tuple((job(id=f"{n}.R{i}", benchmark=n),) for i, n in enumerate(names))
    return Schedule(Plan(benchmarks=tuple(benchmark(n) for n in set(names)), launches=launches), now=0.0)


def measuring(folder: Path, **fields: object) -> RunningJob:
    running = RunningJob(job(stream=str(folder / "none"), log=str(folder / "none"), **fields), now=0.0)
    running.phase = "measuring"
    running.metrics = {"speed": 829.4}
    running.rates.extend([1.0, 2.0, 3.0])
    running.memory_bytes = 2e9
    return running


def test_nothing_is_estimated_before_anything_is_known() -> None:
    assert schedule("a", "b").left_s(1, 5.0, None) is None


def test_launches_of_the_same_benchmark_tell_how_long_the_others_take() -> None:
    plan = schedule("a", "b", "a", "b")
    plan.took(1, 10.0)
    plan.took(2, 2.0)
    assert plan.left_s(3, 4.0, None) == pytest.approx(6.0 + 2.0)
    assert plan.left_s(3, 14.0, None) == pytest.approx(2.0)  # it takes longer than before: not less than nothing


def test_how_far_the_current_one_is_counts_more_than_the_ones_before() -> None:
    plan = schedule("a", "a", "c")
    plan.took(1, 10.0)
    assert plan.left_s(2, 10.0, 0.5) == pytest.approx(10.0 + 10.0)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "5 s"), (7, "5 s"), (33, "35 s"), (50, "1 min"), (260, "4 min"), (5400, "1 h 30 min"), (9000, "2 h 30 min")],
)
def test_estimates_are_rounded(seconds: float, words: str) -> None:
    assert roughly(seconds) == words


@pytest.mark.parametrize("width", [20, 32, 40, 60, 79, 200])
@pytest.mark.parametrize("name", ["bert", "a-very-long-name-of-a-benchmark-that-goes-on", "模型训练脚本很长的名字"])
def test_every_line_fits(tmp_path: Path, width: int, name: str) -> None:
    head = head_line(name, "[3/12]", 65.0, "about 4 min", 0.25, width)
    several = [measuring(tmp_path, id=f"{name}.D{i}", benchmark=name) for i in range(3)]
    lines = [head, *job_lines(several, 1.0, width, most=10)]
    assert all(columns_of(line) <= width for line in lines)
    assert all(word in lines[1] for word in ("D0", "measuring"))


def test_where_room_is_short_the_rate_stays_longest(tmp_path: Path) -> None:
    running = [measuring(tmp_path)]
    wide, narrow = (job_lines(running, 1.0, width, most=5)[0] for width in (79, 30))
    assert wide == "  measuring  speed 829.4  ▁▄█  1.9 GiB" or "GiB" in wide
    assert "GiB" not in narrow
    assert "829.4" in narrow


def test_arithmetic_and_bandwidth_have_their_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunningJob, "rate", (7_392_978_144.0, "B/s"))
    assert "7.393 GB/s" in job_lines([measuring(tmp_path)], 1.0, 79, most=5)[0]


def test_of_many_jobs_the_first_are_shown(tmp_path: Path) -> None:
    many = [measuring(tmp_path, id=f"b.D{i}") for i in range(64)]
    lines = panel_lines("head", many, {}, width=79, height=10)
    assert (len(lines), lines[-1]) == (10, "  … and 56 more")


def test_jobs_are_called_by_what_tells_them_apart() -> None:
    assert short_names([job(id="b.D0")]) == [""]
    assert short_names([job(id="b.R1.D0"), job(id="b.R1.D1")]) == ["D0", "D1"]
    assert short_names([job(id="a.R0"), job(id="b.R0")]) == ["a.R0", "b.R0"]


def test_a_sparkline_shows_small_differences_as_small() -> None:
    assert sparkline([1.0]) == sparkline([float("nan"), 1.0]) == ""
    assert sparkline([100.0, 100.1, 100.0]) in ("▄▅▄", "▅▅▅", "▄▄▄")
    assert (sparkline([1.0, 2.0])[0], sparkline([1.0, 2.0])[-1]) == ("▁", "█")
    assert len(sparkline([0.0, 0.0])) == 2
