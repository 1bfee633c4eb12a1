"""`bw bisect` finds the commit that made a program slower, in real repositories."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from command_line import CommandLine
from processes import wait_for
from small_repository import SmallRepository, noise

READ = "size=size=([\\d.]+)"  # a metric that a program prints: no noise of the machine


@pytest.fixture
def small(tmp_path: Path, bw: CommandLine) -> SmallRepository:
    made = SmallRepository(tmp_path / "project")
    bw.cwd = made.folder
    return made


def printing(small: SmallRepository, sizes: list[int], broken: tuple[int, ...] = ()) -> list[str]:
    """Commits whose program prints these sizes with a little noise; `broken`: numbers of those that cannot be built."""
    hashes = []
    for number, size in enumerate(sizes):
        program = f'echo "size={size}.00$(( {noise(small.folder.parent / "launches")} ))"\n'
        make = "echo no compiler; exit 1\n" if number in broken else "true\n"
        hashes.append(small.commit(f"number {number}", {"program.sh": program, "make.sh": make}))
    return hashes


@pytest.mark.long
def test_a_real_slow_down_is_found_among_eight_commits_of_which_one_cannot_be_built(
    bw: CommandLine, small: SmallRepository
) -> None:
    hashes = []
    for number in range(9):
        work = f"total = 0\nfor i in range({1_500_000 if number < 6 else 3_000_000}):\n    total += i\n"
        make = "echo no compiler; exit 1\n" if number == 4 else "true\n"
        hashes.append(small.commit(f"number {number}", {"program.py": work, "make.sh": make, "note": str(number)}))
    (small.folder / "program.py").write_text("raise SystemExit('the user works on it')\n")
    words = ["HEAD~8", "HEAD", "--build", "sh make.sh", "--metric", "process.cpu_time", "--json"]
    found = json.loads(bw("bisect", *words, "--", "python", "program.py").stdout)
    assert found["suspects"] == [hashes[6]]
    assert found["found"]
    assert found["chance"] >= 0.95
    assert 1.2 < found["ratio"] < 3.3  # its interval is wide where few launches sufficed
    assert found["launches"] <= 40
    assert (small.folder / "program.py").read_text().startswith("raise SystemExit")
    assert json.loads(bw("runs", "--json").stdout) == []


def test_commits_that_cannot_be_built_leave_a_range(bw: CommandLine, small: SmallRepository) -> None:
    hashes = printing(small, [1, 1, 1, 2, 2, 2], broken=(2, 3))
    words = ["HEAD~5", "HEAD", "--build", "sh make.sh", "--metric", READ, "--direction", "either"]
    text = bw("bisect", *words, "--", "sh", "program.sh").stdout
    assert "one of these 3 commits" in text
    for number in (2, 3, 4):
        assert hashes[number][:10] in text
    assert " ".join(text.split()).count("could not be built (exit code 1)") == 2
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.long
def test_where_nothing_changed_no_commit_is_blamed(bw: CommandLine, small: SmallRepository) -> None:
    printing(small, [1, 1, 1, 1])
    options = ["--metric", READ, "--direction", "either", "--posterior", "0.999"]
    words = ["HEAD~3", "HEAD", *options, "--", "sh", "program.sh"]
    assert "not found: no commit made size different" in bw("bisect", *words, code=1).stdout


def test_a_bisection_that_reached_its_limit_goes_on_with_resume(bw: CommandLine, small: SmallRepository) -> None:
    hashes = printing(small, [1, 1, 1, 1, 1, 3, 3, 3])
    words = ["HEAD~7", "HEAD", "--metric", READ, "--direction", "either", "--json"]
    target = ["--", "sh", "program.sh"]
    first = json.loads(bw("bisect", *words, "--most-launches", "6", *target, code=1).stdout)
    assert first["launches"] == 6
    assert "--most-launches" in first["why_not"]
    then = json.loads(bw("bisect", *words, "--resume", *target).stdout)
    assert json.loads(bw("bisect", "--resume").stdout) == then  # the newest, which has nothing left to do
    assert then["suspects"] == [hashes[5]]
    before = [value for commit in first["commits"] for value in commit["values"]]
    after = [value for commit in then["commits"] for value in commit["values"]]
    assert set(before) <= set(after)
    assert len(after) == then["launches"] > 6


def test_ctrl_c_says_how_to_go_on_and_loses_nothing(bw: CommandLine, small: SmallRepository) -> None:
    printing(small, [1, 1, 3, 3])
    (small.folder / "program.sh").write_text("echo size=1; sleep 1\n")
    small.commit("slow")
    argv = bw.argv("bisect", "HEAD~4", "HEAD", "--metric", READ, "--", "sh", "program.sh")
    child = subprocess.Popen(argv, cwd=small.folder, env=bw.env, stderr=subprocess.PIPE, text=True)
    states = bw.base / "bisections"
    assert wait_for(lambda: bool(list(states.glob("*/bisection.json"))))
    os.kill(child.pid, signal.SIGINT)
    said = child.communicate()[1]
    assert child.returncode == 130
    assert "to go on, add --resume" in said
    [state] = states.glob("*/bisection.json")
    assert json.loads(state.read_text())["launches"]


@pytest.mark.parametrize(("target", "metric"), [(["--", "sh", "./program.sh"], READ), (["tasks.cfg"], "size")])
def test_a_repository_is_bisected_from_outside(
    bw: CommandLine, small: SmallRepository, tmp_path: Path, target: list[str], metric: str
) -> None:
    task = (
        "patterns = ['size=(.+)']\nmetrics = ['size']\ncompute_method = ['last']\ncommand_to_execute = sh program.sh\n"
    )
    small.commit("a task file", {"tasks.cfg": f"[task]\n{task}num_gpus = 0\n"})
    hashes = printing(small, [1, 1, 3, 3])
    bw.cwd = tmp_path / "outside"
    bw.cwd.mkdir()
    words = ["--repo-dir", "../project", "HEAD~3", "HEAD", "--metric", metric, "--direction", "either", "--json"]
    assert json.loads(bw("bisect", *words, *target).stdout)["suspects"] == [hashes[2]]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["HEAD", "HEAD~1", "--", "true"], "swap them"),
        (["HEAD", "HEAD", "--", "true"], "the same commit"),
        (["HEAD~1", "nonsense", "--", "true"], "there is no commit 'nonsense'"),
        (["HEAD~1", "HEAD"], "there is no target"),
        (["HEAD~1", "HEAD", "--resume", "--", "true"], "was not begun yet"),
        (["--resume"], "no bisection was begun in this folder; begin one"),
        (["HEAD~1", "HEAD", "--build", " ", "--", "true"], "the build command is empty"),
        (["HEAD~1", "HEAD", "--metric", "a", "--metric", "b", "--", "true"], "only one metric"),
    ],
)
def test_what_cannot_be_bisected_is_refused_at_once(
    bw: CommandLine, small: SmallRepository, words: list[str], said: str
) -> None:
    printing(small, [1, 1])
    assert said in bw("bisect", *words, code=2).stderr


def test_a_program_that_no_commit_has_is_refused_instead_of_measured_again_and_again(
    bw: CommandLine, small: SmallRepository
) -> None:
    printing(small, [1, 1])
    (small.folder / "app").write_text("#!/bin/sh\necho size=1\n")
    (small.folder / "app").chmod(0o755)
    (small.folder / ".git" / "info" / "exclude").write_text("app\n")
    assert "both sides would run the same program" in bw("bisect", "HEAD~1", "HEAD", "--", "./app", code=2).stderr
    (small.folder / "new.py").write_text("print('size=1')\n")
    said = bw("bisect", "HEAD~1", "HEAD", "--", "python", "new.py", code=2).stderr
    assert "has no new.py" in said


def test_a_good_commit_that_cannot_be_measured_ends_it(bw: CommandLine, small: SmallRepository) -> None:
    printing(small, [1, 1])
    assert "its launch failed" in bw("bisect", "HEAD~1", "HEAD", "--", "false", code=3).stderr
