"""`run FOLDER`: of scripts, few or many."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest
from command_line import CommandLine


@pytest.fixture
def scripts(bw: CommandLine) -> Path:
    folder = bw.cwd / "many"
    folder.mkdir()
    for number in range(6):
        (folder / f"s{number}.py").write_text(f"open('ran{number}', 'w')\n")
    (folder / "benchfile.py").write_text("open('ran-benchfile', 'w')\n")
    return folder


def ran(bw: CommandLine) -> list[str]:
    return sorted(path.name for path in bw.cwd.glob("ran*"))


def on_terminal(bw: CommandLine, answer: str, *words: str) -> tuple[int, str]:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        bw.argv(*words), cwd=bw.cwd, env=bw.env, stdin=slave, stderr=slave, stdout=subprocess.PIPE
    )
    os.close(slave)
    os.write(master, answer.encode())
    process.communicate(timeout=600)
    said = b""
    try:
        while part := os.read(master, 4096):
            said += part
    except OSError:  # all of it was read, and nobody holds the other side
        pass
    os.close(master)
    return process.returncode, " ".join(said.decode().split())


def test_more_than_a_handful_need_all_where_nobody_can_be_asked(bw: CommandLine, scripts: Path) -> None:
    said = bw("run", "many", code=2).stderr
    assert "many: holds 6 scripts (s0.py, s1.py, s2.py…), and each would be run" in said
    assert "--all" in said
    assert ran(bw) == []
    body = bw.json("run", "many", "--all", "--as", "command")
    assert len(body["results"]) == 6
    assert ran(bw) == [f"ran{number}" for number in range(6)]


def test_on_a_terminal_the_user_is_asked_and_no_runs_nothing(bw: CommandLine, scripts: Path) -> None:
    code, said = on_terminal(bw, "n\n", "run", "many", "--as", "command")
    assert code == 2
    assert "Run all of them? [y/N]" in said
    assert ran(bw) == []
    code, said = on_terminal(bw, "y\n", "run", "many", "--as", "command")
    assert code == 0, said
    assert len(ran(bw)) == 6


def test_a_plan_runs_nothing_and_needs_no_consent(bw: CommandLine, scripts: Path) -> None:
    assert bw("plan", "many", "--as", "command").stdout.count("s5.py") >= 1
    assert ran(bw) == []


def test_the_home_folder_is_not_run_even_if_all_are_asked_for(bw: CommandLine, scripts: Path) -> None:
    said = bw("run", str(scripts), "--all", code=2, env={"HOME": str(scripts)}).stderr
    assert "is your home folder; its scripts are not run" in said
    assert ran(bw) == []
