"""`run SUITE` on a machine where nothing is installed or prepared yet."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from builders import git
from command_line import CommandLine
from processes import wait_for
from suite_folder import PREPARE, SuiteFolder


@pytest.fixture
def suite(bw: CommandLine, tmp_path: Path) -> SuiteFolder:
    folder = tmp_path / "suite"
    folder.mkdir()
    return SuiteFolder(bw, folder)


def test_one_command_installs_prepares_and_runs_and_the_next_does_none_of_it_again(
    bw: CommandLine, suite: SuiteFolder
) -> None:
    suite.add("one", {"prepare.py": PREPARE, "requirements.in": "alpha\n"}, argv=["--x"], stop={"steps": 5}, warmup=1)
    assert bw.json("run", suite.path)["status"] == "ok"
    assert suite.version("alpha", "one") == "2.0"
    assert len(suite.prepared()) == 1
    environments = suite.environments()
    said = bw("run", suite.path)
    assert "installing" not in said.stderr
    assert "prepare.py" not in said.stderr
    assert len(suite.prepared()) == 1
    assert suite.environments() == environments


def test_what_changed_is_set_up_anew_before_it_is_measured(bw: CommandLine, suite: SuiteFolder) -> None:
    place = suite.add("one", {"requirements.in": "alpha<2\n"}, stop={"steps": 5}, warmup=1)
    bw("run", suite.path)
    (place / "requirements.in").write_text("alpha\n")
    bw("run", suite.path)
    assert suite.version("alpha", "one") == "2.0"


def test_no_setup_touches_nothing_and_has_the_next_command(bw: CommandLine, suite: SuiteFolder) -> None:
    suite.add("one", {"requirements.in": "alpha\n"})
    said = bw("run", suite.path, "--no-setup", code=3).stderr
    assert f"not installed; run: benchwright install {suite.path} --select one" in said
    assert not suite.venv.exists()


def test_a_benchmark_whose_set_up_fails_is_a_failed_row_with_its_reason_and_the_others_run(
    bw: CommandLine, suite: SuiteFolder
) -> None:
    suite.add("good", stop={"steps": 5}, warmup=1)
    suite.add("absent", {"requirements.in": "nothere\n"})
    suite.add("broken", {"prepare.py": "raise SystemExit(3)"})
    suite.add("unpinned", {"requirements.in": "alpha\n"}, install_variant="cuda")
    body = bw.json("run", suite.path, code=1)
    results = {r["benchmark"]: r for r in body["results"]}
    assert {name: r["status"] for name, r in results.items()} == {
        "good": "ok",
        "absent": "failed",
        "broken": "failed",
        "unpinned": "failed",
    }
    assert "install failed" in results["absent"]["detail"]
    assert "nothere was not found" in results["absent"]["detail"]
    assert "requirements.cuda.txt" in results["unpinned"]["detail"]
    assert "prepare failed: exited with code 3; its log: " in results["broken"]["detail"]


def test_where_nothing_can_be_set_up_the_reasons_are_the_error(bw: CommandLine, suite: SuiteFolder) -> None:
    for name in ("one", "two"):
        suite.add(name, {"requirements.in": "nothere\n"}, folder="shared", install_group="g")
    said = bw("run", suite.path, code=3).stderr
    assert "nothing can be run yet: one, two: install failed: " in said
    assert "nothere was not found" in said
    assert not list((bw.base / "runs").glob("*")) if (bw.base / "runs").exists() else True


def test_a_definition_in_a_git_repository_is_cloned_first(bw: CommandLine, suite: SuiteFolder, tmp_path: Path) -> None:
    there = tmp_path / "repository"
    place = suite.add("one", {"requirements.in": "alpha\n"}, stop={"steps": 5}, warmup=1)
    place.rename(there)
    git(there, "init", "-q", "-b", "main")
    git(there, "add", ".")
    git(there, "commit", "-qm", "one")
    suite.entries["one"]["definition"] = {"git": there.as_uri(), "branch": "main"}
    suite.write()
    assert bw.json("run", suite.path)["status"] == "ok"


SLOW = """
import os, pathlib, time
data = pathlib.Path(os.environ["BENCHWRIGHT_DATA_DIR"])
(data / "half").write_text("")
while not (data / "go").exists():
    time.sleep(0.02)
"""


def test_ctrl_c_during_set_up_ends_with_130_and_the_same_command_goes_on_from_there(
    bw: CommandLine, suite: SuiteFolder
) -> None:
    suite.add("one", {"prepare.py": SLOW, "requirements.in": "alpha\n"}, stop={"steps": 5}, warmup=1)
    process = subprocess.Popen(
        bw.argv("run", suite.path), cwd=bw.cwd, env=bw.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert wait_for((suite.data / "half").exists)
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "run the same command again" in said
    installed = suite.environments()
    (suite.data / "go").write_text("")
    assert bw.json("run", suite.path)["status"] == "ok"
    assert suite.environments() == installed, "the environment from before was taken"


def test_every_phase_takes_the_folder_of_a_suite(bw: CommandLine, suite: SuiteFolder) -> None:
    suite.add("one", {"prepare.py": PREPARE, "requirements.in": "alpha\n"}, stop={"steps": 5}, warmup=1)
    assert bw.json("install", str(suite.folder))["groups"][0]["status"] == "built"
    assert bw.json("prepare", str(suite.folder))["benchmarks"][0]["status"] == "prepared"
    assert bw.json("run", str(suite.folder), "--no-setup")["status"] == "ok"
    (suite.folder / "empty").mkdir()
    assert "suite.yaml: no such file" in bw("install", str(suite.folder / "empty"), code=2).stderr


def test_nothing_is_installed_for_a_benchmark_that_this_machine_skips(bw: CommandLine, suite: SuiteFolder) -> None:
    suite.add("here", stop={"steps": 5}, warmup=1)
    suite.add("elsewhere", {"requirements.in": "nothere\n"}, requires_capabilities=["gpu['count'] > 99"])
    body = bw.json("run", suite.path)
    assert {r["benchmark"]: r["status"] for r in body["results"]} == {"here": "ok", "elsewhere": "skipped"}
    assert not (suite.venv / ".environments").exists()
