"""`benchwright run --resume`: what it takes, and what it refuses."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from command_line import CommandLine
from processes import kill, wait_for

pytestmark = pytest.mark.xdist_group("resume")  # one worker: some look at the same run

HOLD = "while [ -e hold ]; do sleep 0.1; done"  # the test lets it go on
TWO_LAUNCHES = ("--repeat", "2", "--", "sh", "-c", f"echo $API_KEY >> keys; {HOLD}")


def interrupted(bw: CommandLine, *args: str) -> Path:
    """A run of two launches that was stopped in its first."""
    stopped(bw, *args)
    (bw.cwd / "keys").unlink()
    return bw.last_run()


def stopped(bw: CommandLine, *args: str, after: int = 1) -> None:
    """A run that was stopped when its launches had written so many characters, or lines."""
    keys, hold = bw.cwd / "keys", bw.cwd / "hold"
    hold.touch()
    process = subprocess.Popen(bw.argv("run", *args), cwd=bw.cwd, env=bw.env, stderr=subprocess.DEVNULL)
    assert wait_for(lambda: keys.exists() and len(keys.read_text()) >= after)
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(timeout=600) == 130
    hold.unlink()


def test_a_secret_is_not_kept_and_has_to_be_given_again(bw: CommandLine) -> None:
    folder = interrupted(bw, "--env", "API_KEY=s3cr3t", *TWO_LAUNCHES)
    assert not [p.name for p in folder.iterdir() if b"s3cr3t" in p.read_bytes()]
    refused = bw("run", "--resume", code=2)
    assert "API_KEY: secrets are not stored" in refused.stderr
    bw("run", "--resume", "--env", "API_KEY=s3cr3t", *TWO_LAUNCHES)
    assert (bw.cwd / "keys").read_text().split() == ["s3cr3t"] * 2


def test_a_damaged_run_is_not_in_the_way_of_another(bw: CommandLine) -> None:
    wanted = interrupted(bw, *TWO_LAUNCHES)
    damaged = wanted.with_name(wanted.name.replace("sh.", "damaged."))
    shutil.copytree(wanted, damaged)
    (damaged / "plan.json").write_text('{"versi')
    assert json.loads(bw("run", "--resume", "--json").stdout)["id"] == wanted.name


def test_a_launch_that_ended_because_everything_was_killed_is_repeated(bw: CommandLine) -> None:
    (bw.cwd / "hold").touch()
    process = subprocess.Popen(bw.argv("run", *TWO_LAUNCHES), cwd=bw.cwd, env=bw.env)
    assert wait_for((bw.cwd / "keys").exists)
    main = psutil.Process(process.pid)
    kill(main, *main.children())
    process.wait(timeout=600)
    (bw.cwd / "hold").unlink()
    stream = bw.last_run() / "sh.R0.D0.data"
    assert wait_for(lambda: b'"end"' in stream.read_bytes())
    body = json.loads(bw("run", "--resume", "--json").stdout)
    assert [launch["status"] for launch in body["results"][0]["launches"]] == ["ok", "ok"]


def test_output_is_shown_if_the_resumed_run_is_asked_to(bw: CommandLine) -> None:
    interrupted(bw, "--", "sh", "-c", f"echo word; echo > keys; {HOLD}")
    assert bw("run", "--resume", "--show-output").stderr.startswith("word\n")


SCRIPT = """
import helper, os, time
print("speed", helper.SPEED, flush=True)
open("keys", "a").write("x")
while os.path.getsize("keys") > 2 and os.path.exists("hold"):
    time.sleep(0.02)
"""
FOUR = ("--repeat", "4", "--metric", "speed=speed (.*)", "--", sys.executable, "slow.py")


@pytest.fixture(scope="module")
def half_done_once(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A run of four launches of a script with a module, stopped in the third; beside it a copy of all its files."""
    folder = tmp_path_factory.mktemp("half")
    (folder / "now").mkdir()
    bw = CommandLine(folder / "now" / "base", folder / "now")
    (bw.cwd / "slow.py").write_text(SCRIPT)
    (bw.cwd / "helper.py").write_text("SPEED = 5\n")
    stopped(bw, *FOUR, after=3)
    shutil.copytree(bw.cwd, folder / "before")
    return bw


@pytest.fixture
def half_done(half_done_once: CommandLine) -> CommandLine:
    """That run, as it was when it was stopped."""
    folder = half_done_once.cwd
    shutil.rmtree(folder)
    shutil.copytree(folder.with_name("before"), folder)
    return half_done_once


def test_a_script_that_was_edited_meanwhile_is_refused_with_what_differs(half_done: CommandLine) -> None:
    bw = half_done
    (bw.cwd / "helper.py").write_text("SPEED = 50\n")
    for again in ((), FOUR):
        refused = bw("run", "--resume", *again, code=2)
        assert f"{bw.cwd}/helper.py was changed" in refused.stderr
        assert "undo the change, start a new run, or continue with --anyway" in refused.stderr
    (bw.cwd / "helper.py").write_text("SPEED = 5\n")
    body = bw.json("run", "--resume")
    assert [m["values"] for m in body["results"][0]["metrics"] if m["metric"] == "speed"] == [[5.0] * 4]
    assert "versions" not in json.dumps(body)


def test_resumed_anyway_the_run_and_its_results_are_marked_in_every_format(half_done: CommandLine) -> None:
    bw = half_done
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


def test_a_variable_that_explains_performance_must_be_the_same(half_done: CommandLine) -> None:
    bw = half_done
    refused = bw("run", "--resume", code=2, env={"OMP_NUM_THREADS": "3"})
    assert "environment: OMP_NUM_THREADS was not set, is 3" in refused.stderr
    assert bw.json("run", "--resume", env={"SOMETHING_ELSE": "3"})["status"] == "ok"


def test_where_nothing_was_finished_nothing_can_be_mixed_but_options_are_refused(bw: CommandLine) -> None:
    interrupted(bw, *TWO_LAUNCHES)
    refused = bw("run", "--resume", "--repeat", "6", code=2)
    assert "--repeat cannot change a run" in refused.stderr
    body = bw.json("run", "--resume", env={"OMP_NUM_THREADS": "3"})
    assert (body["status"], len(body["results"][0]["launches"])) == ("ok", 2)
    assert not any("--anyway" in note["text"] for note in body["notes"])


def test_a_run_of_which_nothing_is_known_is_refused(half_done: CommandLine) -> None:
    bw = half_done
    (bw.last_run() / "provenance.json").write_bytes(b"\xff{")
    refused = bw("run", "--resume", code=2)
    assert "provenance.json is missing or damaged" in refused.stderr
    assert bw.json("run", "--resume", "--anyway")["results"][0]["notes"]


def test_anyway_is_for_runs_that_are_resumed(bw: CommandLine) -> None:
    assert "--anyway: only applies to a resumed run" in bw("run", "--anyway", "--", "true", code=2).stderr


def test_a_secret_of_the_command_line_has_to_be_given_again(bw: CommandLine) -> None:
    said = ("--repeat", "2", "--", "sh", "-c", f'echo "$1" >> keys; {HOLD}', "sh", "postgres://u:s3cr3t@h")
    folder = interrupted(bw, *said)
    assert not [p.name for p in folder.iterdir() if b"s3cr3t" in p.read_bytes()]
    refused = bw("run", "--resume", code=2)
    assert "'postgres://u:(redacted)@h': secrets are not stored" in refused.stderr
    bw("run", "--resume", *said)
    assert (bw.cwd / "keys").read_text().split() == ["postgres://u:s3cr3t@h"] * 2


KILLS_A_PARENT = """
import os, signal, time
if os.path.exists("kill"):
    os.unlink("kill")
    pid = os.getppid()
    if {agent}:
        pid = int(open(f"/proc/{{pid}}/stat").read().rpartition(")")[2].split()[1])
    os.kill(pid, signal.SIGKILL)
    time.sleep(60)
open("searched", "a").write("x")
"""
HAS_A_MODEL = "import torch\ntorch.nn.Linear(4, 2)(torch.ones(3, 4))\n"


@pytest.mark.parametrize(
    ("agent", "model", "found"),
    [
        (False, "", ("net.py", "skipped")),
        pytest.param(True, HAS_A_MODEL, ("net.py::Linear@torch-eager", "ok"), marks=pytest.mark.long),
    ],
    ids=["supervisor", "agent"],
)
def test_a_search_for_models_whose_supervisor_or_agent_was_killed_is_repeated(
    bw: CommandLine, agent: bool, model: str, found: tuple[str, str]
) -> None:
    pytest.importorskip("torch")
    (bw.cwd / "net.py").write_text(KILLS_A_PARENT.format(agent=agent) + model)
    (bw.cwd / "kill").touch()
    body = bw.json("run", "net.py", "--as", "models", "--runtime", "torch-eager", "--stop", "50", code=3)
    assert [(r["benchmark"], r["reason"], r["launches"]) for r in body["results"]] == [("net.py", "agent_lost", [])]
    assert "the agent was killed" in bw("report", "last").stdout
    resumed = bw.json("run", "--resume", code=0 if model else 3)
    assert resumed["id"] == body["id"]
    assert (bw.cwd / "searched").exists()
    assert [(r["benchmark"], r["status"]) for r in resumed["results"]] == [found]
    assert "there is no unfinished run" in bw("run", "--resume", code=2).stderr
