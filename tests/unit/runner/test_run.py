"""Whoever makes a run, it is made by `runner.run`: checked, labelled, stored and resumable in the same way."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import benchwright
from benchwright.cli.main import cli
from benchwright.core.errors import InvalidInput
from benchwright.results.kept_runs import Results
from benchwright.runs.known_runs import all_runs
from benchwright.runs.run_folder import RunFolder

SUITE = """\
one:
  definition: .
  plan: {method: njobs, n: 1}
  argv: [auto_batch(8)]
"""
SYSTEM = "system: {arch: cpu}\nmultirun:\n  runs: [{name: 'm.{time}', matrix: {sizer.batch_size: 8}}]\n"
MAIN = """\
import sys
from benchprobe import iterate
if int(sys.argv[1]) > 8:
    raise MemoryError("out of memory")
for x in iterate("train", range(30)):
    pass
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCHWRIGHT_BASE", str(tmp_path / "base"))
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "system.yaml").write_text(SYSTEM)
    (tmp_path / "main.py").write_text(MAIN)
    return tmp_path


def typed(*words: str) -> None:
    done = CliRunner().invoke(cli, [*words, "-q"], standalone_mode=False)
    if done.exception is not None:
        raise done.exception


SUITE_WORDS = ("suite.yaml", "--system", "system.yaml", "--use-current-env", "--label", "who=me", "--warmup", "2")
CALLERS: dict[str, Callable[[], object]] = {
    "command line": lambda: typed("run", *SUITE_WORDS),
    "python": lambda: benchwright.run(
        "suite.yaml", system="system.yaml", use_current_env=True, labels={"who": "me"}, warmup=2
    ),
    "matrix": lambda: typed("matrix", *SUITE_WORDS),
    "batch search": lambda: typed("run", *SUITE_WORDS, "--size", "search"),
}


@pytest.mark.parametrize("caller", CALLERS)
def test_every_run_is_stored_and_labelled_and_resumes_with_nothing_to_do(caller: str, folder: Path) -> None:
    CALLERS[caller]()
    runs = all_runs(folder / "base" / "runs")
    assert runs
    with Results.choose(None, None, {"BENCHWRIGHT_BASE": str(folder / "base")}) as results:
        for run in runs:
            row = results.row(run.unique_id)
            assert row is not None, f"{run.id} is not in the store"
            assert row.labels["who"] == "me"
    first = streams(runs[0])
    again = benchwright.run([], resume=runs[0].id)
    assert again.labels["who"] == "me"
    assert streams(runs[0]) == first, "nothing is measured twice"


def streams(run: RunFolder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.path.glob("*.data")}


@pytest.mark.long
def test_the_doctor_makes_its_runs_in_the_same_way_and_keeps_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchwright.doctor.check.PAIRS", 2)
    done = CliRunner().invoke(cli, ["doctor", "--json"], standalone_mode=False)
    assert done.exception is None
    assert '"noise"' in done.stdout
    assert not (folder / "base" / "store.db").exists()
    assert all_runs(folder / "base" / "runs") == []


WRONG = {
    "no time": ({"timeout": 0}, ("--timeout", "0"), "is not a time limit"),
    "no launch": ({"repeat": 0}, ("--repeat", "0"), "0'? is not"),
    "no store": ({"store": "ftp://x"}, ("--store", "ftp://x"), "is not a kind of store"),
    "another kind's": ({"threads": 2}, ("--threads", "2"), "applies to models"),
    "no label": ({"labels": ["x"]}, ("--label", "x"), "is not a label"),
    "anyway": ({"anyway": True}, ("--anyway",), "only applies to a resumed run"),
    "no time stamp": ({"run_name": "{x}"}, ("--run-name", "{x}"), "{x} has no meaning"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_the_command_line_refuses_python_refuses_too(case: str, folder: Path) -> None:
    keywords, words, said = WRONG[case]
    with pytest.raises(InvalidInput, match=said.replace("{", r"\{")):
        benchwright.run([sys.executable, "-c", "pass"], **keywords)  # type: ignore[arg-type]
    with pytest.raises((InvalidInput, click.UsageError)) as refused:  # click checks numbers by itself
        typed("run", *words, "--", sys.executable, "-c", "pass")
    assert refused.value.exit_code == 2
    assert all_runs(folder / "base" / "runs") == []


def test_a_misspelt_keyword_is_a_type_error_that_names_the_right_one(folder: Path) -> None:
    with pytest.raises(TypeError, match="did you mean 'repeat'"):
        benchwright.run(["true"], repaet=2)  # type: ignore[call-arg]


def test_a_store_that_cannot_be_used_is_a_warning_in_python(folder: Path) -> None:
    (folder / "base").mkdir()
    (folder / "base" / "store.db").write_text("no database")
    with pytest.warns(RuntimeWarning, match="is complete, but not in the store"):
        run = benchwright.run([sys.executable, "-c", "pass"])
    assert run.ok


def test_an_option_has_no_effect_on_a_run_that_is_resumed_without_its_target(folder: Path) -> None:
    run = benchwright.run([sys.executable, "-c", "pass"])
    with pytest.raises(InvalidInput, match="--repeat cannot change a run that is resumed"):
        benchwright.run([], resume=run.id, repeat=3)
