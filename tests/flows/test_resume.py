"""`benchwright run --resume`: what it takes, and what it refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
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
    assert "API_KEY: secrets are not stored" in refused.stderr
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
    assert "--repeat cannot change a run" in refused.stderr


def test_output_is_shown_if_the_resumed_run_is_asked_to(bw: CommandLine) -> None:
    interrupted(bw, "--", "sh", "-c", "echo word; touch keys; sleep 0.5")
    assert bw("run", "--resume", "--show-output").stderr.startswith("word\n")


SLOW = (
    "import helper, os, time\nprint('speed', helper.SPEED, flush=True)\nopen('keys', 'a').write('x')\ntime.sleep(0.2)\n"
)
EIGHT = ("--repeat", "8", "--metric", "speed=speed (.*)", "--", sys.executable, "slow.py")


def half_done(bw: CommandLine, *more: str) -> None:
    """A run of eight launches of a script with a module, stopped after some."""
    (bw.cwd / "slow.py").write_text(SLOW)
    (bw.cwd / "helper.py").write_text("SPEED = 5\n")
    (bw.cwd / "keys").unlink(missing_ok=True)
    process = subprocess.Popen(bw.argv("run", *more, *EIGHT), cwd=bw.cwd, env=bw.env, stderr=subprocess.DEVNULL)
    assert wait_for(lambda: (bw.cwd / "keys").exists() and len((bw.cwd / "keys").read_text()) >= 3)
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(timeout=60) == 130


def test_a_script_that_was_edited_meanwhile_is_refused_with_what_differs(bw: CommandLine) -> None:
    half_done(bw)
    (bw.cwd / "helper.py").write_text("SPEED = 50\n")
    for again in ((), EIGHT):
        refused = bw("run", "--resume", *again, code=2)
        assert f"{bw.cwd}/helper.py was changed" in refused.stderr
        assert "undo the change, start a new run, or continue with --anyway" in refused.stderr
    (bw.cwd / "helper.py").write_text("SPEED = 5\n")
    body = bw.json("run", "--resume")
    assert [m["values"] for m in body["results"][0]["metrics"] if m["metric"] == "speed"] == [[5.0] * 8]
    assert "versions" not in json.dumps(body)


def test_resumed_anyway_the_run_and_its_results_are_marked_in_every_format(bw: CommandLine) -> None:
    half_done(bw)
    (bw.cwd / "helper.py").write_text("SPEED = 50\n")
    body = bw.json("run", "--resume", "--anyway")
    [result] = body["results"]
    changed = f"{bw.cwd}/helper.py was changed"
    assert result["notes"] == [f"its launches mix 2 versions: {changed}"]
    assert all(launch["facts"]["mixed_versions"] == [changed] for launch in result["launches"])
    [note] = [note["text"] for note in body["notes"] if "--anyway" in note["text"]]
    assert note.endswith(f"although something had changed: {changed}")
    for format in ("screen", "markdown", "html", "json", "csv"):
        shown = "".join(bw("report", "last", "--format", format).stdout.split())
        assert "mix2versions" in shown, format
        assert "helper.pywaschanged" in shown, format
    assert "mixed_versions" in bw("export", "last", "--format", "json", "-o", "-").stdout
    speeds = [m["values"] for m in result["metrics"] if m["metric"] == "speed"]
    assert set(speeds[0]) == {5.0, 50.0}


def test_a_variable_that_explains_performance_must_be_the_same(bw: CommandLine) -> None:
    half_done(bw)
    refused = bw("run", "--resume", code=2, env={"OMP_NUM_THREADS": "3"})
    assert "environment: OMP_NUM_THREADS was not set, is 3" in refused.stderr
    assert bw.json("run", "--resume", env={"SOMETHING_ELSE": "3"})["status"] == "ok"


def test_where_nothing_was_finished_nothing_can_be_mixed(bw: CommandLine) -> None:
    interrupted(bw, *TWO_LAUNCHES)
    body = bw.json("run", "--resume", env={"OMP_NUM_THREADS": "3"})
    assert (body["status"], len(body["results"][0]["launches"])) == ("ok", 2)
    assert not any("--anyway" in note["text"] for note in body["notes"])


def test_a_run_of_which_nothing_is_known_is_refused(bw: CommandLine) -> None:
    half_done(bw)
    (bw.last_run() / "provenance.json").write_bytes(b"\xff{")
    refused = bw("run", "--resume", code=2)
    assert "provenance.json is missing or damaged" in refused.stderr
    assert bw.json("run", "--resume", "--anyway")["results"][0]["notes"]


def test_anyway_is_for_runs_that_are_resumed(bw: CommandLine) -> None:
    assert "--anyway: only applies to a resumed run" in bw("run", "--anyway", "--", "true", code=2).stderr


def test_a_secret_of_the_command_line_has_to_be_given_again(bw: CommandLine) -> None:
    said = ("--repeat", "2", "--", "sh", "-c", 'echo "$1" >> keys; sleep 1', "sh", "postgres://u:s3cr3t@h")
    folder = interrupted(bw, *said)
    assert not [p.name for p in folder.iterdir() if b"s3cr3t" in p.read_bytes()]
    refused = bw("run", "--resume", code=2)
    assert "'postgres://u:(redacted)@h': secrets are not stored" in refused.stderr
    bw("run", "--resume", *said)
    assert (bw.cwd / "keys").read_text().split() == ["postgres://u:s3cr3t@h"] * 2
