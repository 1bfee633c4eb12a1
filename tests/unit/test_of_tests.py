"""What the tests are run with: their durations, their limit of time, what is made once for all workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from made_once import MadeOnce

SUPPORT = Path(__file__).parents[1] / "support"
TESTS = """
import subprocess, sys, time

def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass

def test_here(): burn(0.3)
def test_there(): subprocess.run([sys.executable, "-S", "-c", "import time\\nwhile time.process_time() < 0.6: pass"])
def test_nowhere(): time.sleep(0.3)
"""


def run_pytest(folder: Path, *options: str) -> str:
    (folder / "tests" / "flows").mkdir(parents=True)
    (folder / "tests" / "flows" / "test_it.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\n")
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    env = {**os.environ, "PYTHONPATH": str(SUPPORT)}
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_cpu_seconds_of_tests_and_their_processes_are_told_by_folder_and_test(tmp_path: Path) -> None:
    out = run_pytest(tmp_path, "-p", "durations", "--durations-file", "d.tsv", "-n", "2")
    rows = {
        name.rpartition("::")[2]: [float(each) for each in seconds]
        for name, *seconds in (line.split("\t") for line in (tmp_path / "d.tsv").read_text().splitlines())
    }
    assert 0.3 <= rows["test_here"][0] < 0.6 <= rows["test_there"][1]
    assert rows["test_here"][1] == 0
    assert sum(rows["test_nowhere"][:2]) < 0.2 < 0.3 <= rows["test_nowhere"][2]
    lines = out.splitlines()
    (folder,) = [line.split() for line in lines if line.startswith("tests/flows ")]
    assert folder[1] == "3"
    assert float(folder[4]) == pytest.approx(sum(own + others for own, others, _ in rows.values()), abs=0.11)
    dearest = [line.split()[1] for line in lines if "tests/flows/test_it.py::" in line]
    assert dearest[0].endswith("::test_there")


def test_after_its_time_no_test_begins_and_that_is_said(tmp_path: Path) -> None:
    out = run_pytest(tmp_path, "-p", "time_limit", "--until", "1000", "-rs")
    assert "3 skipped" in out
    assert "left out: the time was over" in out


def test_what_is_made_once_is_made_by_the_first_who_asks(tmp_path: Path) -> None:
    made: list[Path] = []
    first, second = MadeOnce(tmp_path / "kept"), MadeOnce(tmp_path / "kept")
    folders = [each("runs", made.append) for each in (first, second)]
    assert folders == [tmp_path / "kept" / "runs"] * 2
    assert len(made) == 1
    with pytest.raises(AssertionError, match="runs is the name of two things"):
        first("runs", lambda folder: None)


def test_what_could_not_be_made_fails_everyone_who_asks_and_is_not_tried_again(tmp_path: Path) -> None:
    tried = []

    def make(folder: Path) -> None:
        tried.append(folder)
        raise ValueError("no disk")

    made_once = MadeOnce(tmp_path / "kept")
    with pytest.raises(ValueError, match="no disk"):
        made_once("runs", make)
    with pytest.raises(AssertionError, match="making runs failed: ValueError: no disk"):
        made_once("runs", make)
    assert len(tried) == 1
