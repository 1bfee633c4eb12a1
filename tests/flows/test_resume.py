"""`benchwright run --resume`: what it takes, and what it refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import psutil
from command_line import CommandLine
from processes import wait_for

TWO_LAUNCHES = ("--repeat", "2", "--", "sh", "-c", "echo $API_KEY >> keys; sleep 1")


def interrupted(bw: CommandLine, *args: str) -> Path:
    """A run of two launches that was stopped in its first."""
    keys = bw.cwd / "keys"
    keys.unlink(missing_ok=True)
    process = subprocess.Popen(bw.argv("run", *args), cwd=bw.cwd, env=bw.env, stderr=subprocess.DEVNULL)
    assert wait_for(keys.exists)
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(timeout=60) == 130
    keys.unlink()
    return max((bw.base / "runs").iterdir(), key=lambda p: p.stat().st_mtime_ns)


def test_a_secret_is_not_kept_and_has_to_be_given_again(bw: CommandLine) -> None:
    folder = interrupted(bw, "--env", "API_KEY=s3cr3t", *TWO_LAUNCHES)
    assert not [p.name for p in folder.iterdir() if b"s3cr3t" in p.read_bytes()]
    refused = bw("run", "--resume", code=2)
    assert "API_KEY looks secret and was not kept" in refused.stderr
    bw("run", "--resume", "--env", "API_KEY=s3cr3t", *TWO_LAUNCHES)
    assert (bw.cwd / "keys").read_text().split() == ["s3cr3t"] * 2


def test_a_damaged_run_is_not_in_the_way_of_another(bw: CommandLine) -> None:
    wanted = interrupted(bw, *TWO_LAUNCHES)
    damaged = interrupted(bw, "--run-name", "damaged", *TWO_LAUNCHES)
    (damaged / "plan.json").write_text('{"versi')
    assert json.loads(bw("run", "--resume", "--json").stdout)["id"] == wanted.name


def test_a_launch_that_ended_because_everything_was_killed_is_repeated(bw: CommandLine) -> None:
    process = subprocess.Popen(bw.argv("run", *TWO_LAUNCHES), cwd=bw.cwd, env=bw.env)
    assert wait_for((bw.cwd / "keys").exists)
    for victim in (psutil.Process(process.pid), *psutil.Process(process.pid).children()):
        victim.kill()
    process.wait(timeout=60)
    stream = bw.last_run() / "sh.R0.D0.data"
    assert wait_for(lambda: b'"end"' in stream.read_bytes())
    body = json.loads(bw("run", "--resume", "--json").stdout)
    assert [launch["status"] for launch in body["results"][0]["launches"]] == ["ok", "ok"]


def test_an_option_that_would_change_nothing_is_refused(bw: CommandLine) -> None:
    interrupted(bw, *TWO_LAUNCHES)
    refused = bw("run", "--resume", "--repeat", "6", code=2)
    assert "--repeat changes nothing" in refused.stderr


def test_output_is_shown_if_the_resumed_run_is_asked_to(bw: CommandLine) -> None:
    interrupted(bw, "--", "sh", "-c", "echo word; touch keys; sleep 0.5")
    assert bw("run", "--resume", "--show-output").stderr.startswith("word\n")
