"""What a shell offers for a word that is begun."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from benchwright.cli.main import cli


def offered(*words: str) -> list[tuple[str, str]]:
    """Type and value of each, for the last of `words`."""
    found = ShellComplete(cli, {}, "bw", "_BW_COMPLETE").get_completions(list(words[:-1]), words[-1])
    return [(item.type, item.value) for item in found]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A kept run, by its name, and a baseline."""
    monkeypatch.setenv("BENCHWRIGHT_BASE", str(tmp_path))
    words = ["run", "--no-store", "-q", "--run-name", "mine", "--name", "bench one", "--", sys.executable, "-c", "pass"]
    assert CliRunner().invoke(cli, words, standalone_mode=False).exception is None
    (name,) = os.listdir(tmp_path / "runs")
    assert CliRunner().invoke(cli, ["baseline", "set", "main", name], standalone_mode=False).exception is None
    return name


def test_targets_are_files_and_shipped_suites() -> None:
    assert offered("run", "tra") == [("file", "tra")]
    assert ("plain", "quick") in offered("plan", "qui")
    assert offered("find", "a") == offered("import", "a") == [("file", "a")]
    assert offered("run", "--cwd", "") == [("dir", "")]


def test_runtimes_are_completed_behind_each_comma() -> None:
    assert ("plain", "torch-eager,onnxruntime") in offered("run", "a.py", "--runtime", "torch-eager,onn")
    assert ("plain", "training") in offered("run", "--as", "tr")


def test_runs_benchmarks_and_baselines_are_those_that_are_kept(run: str) -> None:
    for words in (("show",), ("report", "last"), ("compare",), ("baseline", "set", "other")):
        assert ("plain", run) in offered(*words, "mi")
    assert ("plain", "last") in offered("show", "la")
    assert offered("logs", run, "be") == offered("history", "be") == [("plain", "bench one")]
    assert offered("compare", "--baseline", "ma") == [("plain", "main")]


def test_without_any_run_nothing_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCHWRIGHT_BASE", str(tmp_path / "none"))
    assert offered("show", "x") == offered("logs", "x", "y") == offered("compare", "--baseline", "x") == []
