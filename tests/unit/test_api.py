"""What Python gets: runs that show themselves, and comparisons."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from builders import launch, measurement, result
from builders import run as built

import benchwright as bw
from benchwright.api import ShownRun, _shown
from benchwright.core.errors import InvalidInput
from benchwright.core.run import Run
from benchwright.kinds.registry import kind_of
from benchwright.runs.read_run import read_run
from benchwright.runs.run_folder import RunFolder


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BENCHWRIGHT_BASE", str(tmp_path / "base"))
    return tmp_path / "base"


def test_a_run_is_printed_as_its_report_and_shown_with_a_picture(base: Path) -> None:
    run = bw.run([sys.executable, "-c", "pass"], name="nothing", repeat=2, cache_dir=base / "apart")
    assert run.folder.startswith(str(base / "apart"))
    assert isinstance(run, ShownRun)
    assert repr(run) == str(run)
    assert "nothing  2 launches" in repr(run)
    assert all(word in run._repr_html_() for word in ("nothing", "<svg", "<table", run.folder))


def test_what_is_printed_does_not_grow_with_the_samples() -> None:
    many = built(result("b", launch(measurement(*map(float, range(100_000))))))
    assert len(repr(_shown(many))) < 2000


def test_a_run_equals_the_one_that_is_read_from_its_folder(base: Path) -> None:
    run = bw.run([sys.executable, "-c", "pass"])
    read = read_run(RunFolder(Path(run.folder)), kind_of)
    assert type(read) is Run
    assert run == read
    assert read == run
    assert run != built(id="another")
    assert run != "a run"


def test_a_result_shows_itself_alone_and_is_still_the_result() -> None:
    run = _shown(built(result("a", launch(measurement(5.0))), result("b", launch(measurement(7.0)))))
    one = run.result("b")
    assert (one == run.results[1], run.results[1] == one, one == run.results[0]) == (True, True, False)
    assert all("7 items/s" in text and "5 items/s" not in text for text in (repr(one), one._repr_html_()))
    with pytest.raises(KeyError):
        run.result("c")


def test_kept_runs_are_loaded_by_any_name(base: Path) -> None:
    run = bw.run([sys.executable, "-c", "pass"])
    assert bw.load("last") == bw.load(run.id) == bw.load(Path(run.folder)) == run
    with pytest.raises(InvalidInput, match="nowhere"):
        bw.load("nowhere")


def test_runs_are_compared_by_themselves_or_by_name(base: Path) -> None:
    runs = [bw.run([sys.executable, "-c", "pass"], name="n", repeat=6) for _ in range(2)]
    by_themselves, by_name = bw.compare(*runs), bw.compare(runs[0].id, "last")
    assert by_themselves.comparisons == by_name.comparisons
    (comparison,) = by_themselves.comparisons
    assert comparison.effects[0].metric == "process.duration"
    assert comparison.treatment in repr(by_themselves)
    assert "<table" in by_themselves._repr_html_()


def test_commands_that_alternated_bring_their_verdict(base: Path) -> None:
    code = f"{sys.executable} -c pass"
    run = bw.run([], commands=[code, f"{code} 2"], repeat=6)
    names = [r.benchmark.name for r in run.results]
    assert "→" in run._repr_html_()
    assert bw.compare(run, between=(names[0], names[1])).comparisons[0].effects


def test_a_comparison_needs_two_sides(base: Path) -> None:
    with pytest.raises(InvalidInput, match="nothing to compare with"):
        bw.compare("last")
    with pytest.raises(InvalidInput, match="of one run"):
        bw.compare("last", "last", between=("a", "b"))


@pytest.mark.parametrize(("progress", "said"), [(None, ""), (False, ""), (True, "[1/2] false")])
def test_progress_is_shown_only_where_it_is_asked_for(
    base: Path, monkeypatch: pytest.MonkeyPatch, progress: bool | None, said: str
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    bw.run(["false"], repeat=2, progress=progress)
    assert stream.getvalue().startswith(said)
    assert bool(stream.getvalue()) == bool(said)
