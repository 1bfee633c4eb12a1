"""Spellings of milabench's command line that still work."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchwright.cli.main import cli
from benchwright.core.errors import InvalidInput
from benchwright.runs.known_runs import all_runs


def test_a_run_can_be_named_with_an_underscore(tmp_path: Path) -> None:
    words = ["run", "--run_name", "old.{time}", "--base", str(tmp_path), "--no-store", "-q", "--", sys.executable]
    done = CliRunner().invoke(cli, [*words, "-c", "pass"], standalone_mode=False)
    assert (done.exception, done.return_value) == (None, 0)
    assert [folder.id.partition(".20")[0] for folder in all_runs(tmp_path / "runs")] == ["old"]


def test_multirun_is_matrix_and_is_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BENCHWRIGHT_SYSTEM", "MILABENCH_SYSTEM"):
        monkeypatch.delenv(name, raising=False)
    done = CliRunner().invoke(cli, ["multirun", "suite.yaml"], standalone_mode=False)
    assert isinstance(done.exception, InvalidInput)
    assert "no system file is named" in str(done.exception)
    assert "multirun\n" not in CliRunner().invoke(cli, ["--help"]).stdout
    assert "Usage: cli matrix " in CliRunner().invoke(cli, ["multirun", "--help"]).stdout
