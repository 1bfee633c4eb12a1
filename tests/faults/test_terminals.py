"""Nobody reads what benchwright says, or the terminal goes away: the run is made all the same."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest
from command_line import CommandLine
from processes import wait_for


def in_a_shell(bw: CommandLine, line: str, *args: str) -> subprocess.CompletedProcess[str]:
    """`line` with `$bw` for the command line with its arguments."""
    words = shlex.join(bw.argv(*args))
    return subprocess.run(
        ["bash", "-c", line.replace("$bw", words)], capture_output=True, text=True, cwd=bw.cwd, env=bw.env
    )


def launches_done(folder: Path) -> int:
    body = json.loads((folder / "run.json").read_text())
    return sum(1 for launch in body["results"][0]["launches"] if launch["status"] == "ok")


def test_a_reader_of_the_progress_that_goes_away_does_not_end_the_run(bw: CommandLine) -> None:
    in_a_shell(bw, "$bw 2>&1 | head -1; wait", "run", "-v", "--repeat", "3", "--", "sleep", "0.1")
    assert wait_for(lambda: launches_done(bw.last_run()) == 3)


def test_the_exit_code_tells_of_a_failure_even_if_nobody_reads_the_report(bw: CommandLine) -> None:
    done = in_a_shell(bw, "$bw | head -0; exit ${PIPESTATUS[0]}", "run", "--", "false")
    assert (done.returncode, done.stderr) == (1, "")
    done = in_a_shell(bw, "$bw | head -0; exit ${PIPESTATUS[0]}", "show")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "closed", [*(pytest.param(one, marks=pytest.mark.long) for one in (">&-", "2>&-", "<&-")), ">&- 2>&- <&-"]
)
def test_closed_descriptors_do_not_matter(bw: CommandLine, closed: str) -> None:
    done = in_a_shell(bw, f"$bw {closed}", "run", "--show-output", "--", "echo", "hello")
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert bw("logs").stdout == "hello\n"


def test_a_report_that_cannot_be_written_is_said_without_a_traceback(bw: CommandLine) -> None:
    done = in_a_shell(bw, "$bw > /dev/full", "run", "--", "true")
    assert (done.returncode, done.stderr) == (3, "benchwright: No space left on device\n")
    assert launches_done(bw.last_run()) == 1


def test_output_that_does_not_end_its_line_stays_apart_from_the_report(bw: CommandLine) -> None:
    assert bw("run", "--show-output", "--", "printf", "a half").stderr == "a half\n"


@pytest.mark.parametrize(("how", "code"), [("nohup", 0), ("env", 130)])
def test_the_end_of_the_terminal_ends_the_run_unless_nohup_was_asked_for(bw: CommandLine, how: str, code: int) -> None:
    process = subprocess.Popen(
        [how, *bw.argv("run", "--", "sh", "-c", "touch began; until test -e go; do sleep 0.05; done")],
        cwd=bw.cwd,
        env=bw.env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    assert wait_for(lambda: (bw.cwd / "began").exists())
    os.kill(process.pid, signal.SIGHUP)
    if how == "nohup":
        (bw.cwd / "go").touch()
    assert process.wait() == code
