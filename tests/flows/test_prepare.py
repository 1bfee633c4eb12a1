"""`prepare`: each script once, in its environment; and what `run` says when something is missing."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import CommandLine
from suite_folder import PREPARE, SuiteFolder

from benchwright.kinds.suite.setup.readiness import readiness
from benchwright.kinds.suite.suites import read_benchmarks, suite_paths_of
from benchwright.options.table import Options


@pytest.fixture
def suite(bw: CommandLine, tmp_path: Path) -> SuiteFolder:
    folder = tmp_path / "suite"
    folder.mkdir()
    return SuiteFolder(bw, folder)


TELL = """\
import json, os, pathlib
wanted = ("MILABENCH_DATA_DIR", "BENCHWRIGHT_DATA_DIR", "XDG_CACHE_HOME", "TORCH_HOME", "HF_HOME", "OWN", "VIRTUAL_ENV")
data = pathlib.Path(os.environ["BENCHWRIGHT_DATA_DIR"])
(data / "told.json").write_text(json.dumps({name: os.environ.get(name) for name in wanted} | {"cwd": os.getcwd()}))
json.loads(os.environ["MILABENCH_CONFIG"])["name"]
"""


def test_a_script_runs_once_with_its_words_filled_in_its_environment(bw: CommandLine, suite: SuiteFolder) -> None:
    files = {"prepare.py": PREPARE, "requirements.in": "alpha\n"}
    suite.add("one", files, argv={"--model": "small", "--data": "{benchwright_data}"})
    bw("install", suite.path)
    body = bw.json("prepare", suite.path)
    assert [(b["name"], b["status"]) for b in body["benchmarks"]] == [("one", "prepared")]
    assert suite.prepared() == [f"{suite.venv / 'one'} --model small --data {suite.data}"]
    assert bw.json("prepare", suite.path)["benchmarks"][0]["status"] == "reused"
    assert len(suite.prepared()) == 1
    assert bw.json("prepare", suite.path, "--force")["benchmarks"][0]["status"] == "prepared"
    assert len(suite.prepared()) == 2


@pytest.mark.compat
def test_scripts_find_data_caches_and_their_own_variables(bw: CommandLine, suite: SuiteFolder) -> None:
    place = suite.add("one", {"prepare.py": TELL, "requirements.in": "alpha\n"}, env={"OWN": "{benchwright_name}"})
    bw("install", suite.path)
    bw("prepare", suite.path)
    told = json.loads((suite.data / "told.json").read_text())
    cache = bw.base / "cache"
    assert told == {
        "MILABENCH_DATA_DIR": str(suite.data),
        "BENCHWRIGHT_DATA_DIR": str(suite.data),
        "XDG_CACHE_HOME": str(cache),
        "TORCH_HOME": str(cache),
        "HF_HOME": str(suite.data),
        "VIRTUAL_ENV": str(suite.venv / "one"),
        "OWN": "one",
        "cwd": str(place),
    }


def test_benchmarks_that_need_the_same_are_prepared_once(bw: CommandLine, suite: SuiteFolder) -> None:
    suite.add("one", {"prepare.py": PREPARE}, folder="shared", argv=["--model", "a"])
    suite.add("two", folder="shared", argv=["--model", "a"])
    suite.add("three", folder="shared", argv=["--model", "b"])
    suite.add("plain")
    body = bw.json("prepare", suite.path)
    assert [b["status"] for b in body["benchmarks"]] == ["prepared", "prepared", "prepared", "nothing"]
    assert [line.split()[-1] for line in suite.prepared()] == ["a", "b"]


def test_a_changed_script_and_lost_data_are_prepared_again(bw: CommandLine, suite: SuiteFolder) -> None:
    place = suite.add("one", {"prepare.py": PREPARE})
    bw("prepare", suite.path)
    (place / "prepare.py").write_text(PREPARE + "# changed\n")
    assert bw.json("prepare", suite.path)["benchmarks"][0]["status"] == "prepared"
    shutil.rmtree(suite.data / "set")
    assert bw.json("prepare", suite.path)["benchmarks"][0]["status"] == "prepared"
    assert len(suite.prepared()) == 1


def test_a_script_that_fails_is_told_with_its_last_words_and_the_others_run(
    bw: CommandLine, suite: SuiteFolder
) -> None:
    suite.add("bad", {"prepare.py": "print('downloading')\nraise SystemExit('no such data set')\n"})
    suite.add("away", {"prepare.py": "raise OSError('could not connect to the hub')\n"})
    suite.add("good", {"prepare.py": PREPARE})
    done = bw("prepare", suite.path, code=1)
    assert "bad: exited with code 1; its log:" in done.stderr
    assert "away: exited with code 1: OSError: could not connect to the hub; its log:" in done.stderr
    assert "    | no such data set" in done.stderr
    assert len(suite.prepared()) == 1
    body = bw.json("prepare", suite.path, code=1)
    assert [b["status"] for b in body["benchmarks"]] == ["failed", "failed", "reused"]
    assert Path(body["benchmarks"][0]["log"]).exists()


def test_a_program_that_is_no_python_script_is_executed(bw: CommandLine, suite: SuiteFolder) -> None:
    script = "#!/bin/sh\nmkdir -p $BENCHWRIGHT_DATA_DIR/set && echo sh $1 >> $BENCHWRIGHT_DATA_DIR/set/log\n"
    place = suite.add("one", {"prepare.sh": script}, prepare="prepare.sh", argv=["--x"])
    said = bw("prepare", suite.path, code=1).stderr
    assert "may not be executed" in said
    (place / "prepare.sh").chmod(0o755)
    bw("prepare", suite.path)
    assert suite.prepared() == ["sh --x"]


def test_several_run_at_a_time_only_when_asked_for(bw: CommandLine, suite: SuiteFolder) -> None:
    meet = (
        "import os, pathlib, sys, time\n"
        "data = pathlib.Path(os.environ['BENCHWRIGHT_DATA_DIR'])\n"
        "(data / sys.argv[1]).write_text('')\n"
        "other = data / {'a': 'b', 'b': 'a'}[sys.argv[1]]\n"
        "limit = time.monotonic() + 300\n"
        "while not other.exists():\n"
        "    assert time.monotonic() < limit\n"
        "    time.sleep(0.02)\n"
    )
    suite.add("one", {"prepare.py": meet}, folder="shared", argv=["a"])
    suite.add("two", folder="shared", argv=["b"])
    body = bw.json("prepare", suite.path, "--jobs", "2")
    assert [b["status"] for b in body["benchmarks"]] == ["prepared", "prepared"]


def test_output_is_shown_when_asked_for(bw: CommandLine, suite: SuiteFolder) -> None:
    suite.add("one", {"prepare.py": PREPARE}, argv=["--x"])
    assert "prepared --x" in bw("prepare", suite.path, "--show-output").stderr


def test_what_is_not_installed_is_not_prepared(bw: CommandLine, suite: SuiteFolder) -> None:
    suite.add("one", {"prepare.py": PREPARE, "requirements.in": "alpha\n"})
    said = bw("prepare", suite.path, code=2).stderr
    assert f"one: not installed; run: benchwright install {suite.path} --select one" in said


def reason(bw: CommandLine, suite: SuiteFolder, base: Path | None = None) -> str | None:
    """Why the one benchmark cannot run yet, as `run` finds out."""
    options = Options(base=str(base or bw.base))
    benchmarks = read_benchmarks([suite.path], options)
    return readiness(benchmarks, suite_paths_of(options, benchmarks)).get("one")


@pytest.fixture(autouse=True)
def _same_base(bw: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCHWRIGHT_BASE", str(bw.base))


def test_run_says_exactly_what_is_missing_and_what_to_type(bw: CommandLine, suite: SuiteFolder) -> None:
    place = suite.add("one", {"prepare.py": PREPARE, "requirements.in": "alpha\n"}, stop={"steps": 5})
    said = bw("run", suite.path, "--no-setup", code=3).stderr
    assert f"not installed; run: benchwright install {suite.path} --select one\n" in said
    bw("install", suite.path)
    said = bw("run", suite.path, "--no-setup", code=3).stderr
    assert f"not prepared; run: benchwright prepare {suite.path} --select one\n" in said
    bw("prepare", suite.path)
    assert reason(bw, suite) is None
    bw("run", suite.path)
    shutil.rmtree(suite.data / "set")
    assert f"its data is gone: {suite.data / 'set'} no longer exists" in str(reason(bw, suite))
    bw("prepare", suite.path)
    (place / "requirements.in").write_text("alpha<2\n")
    assert "requirements changed since it was installed" in str(reason(bw, suite))
    bw("install", suite.path)
    assert reason(bw, suite) is None


def test_an_environment_of_a_variant_that_was_asked_for_is_used(bw: CommandLine, suite: SuiteFolder) -> None:
    suite.add("one", {"requirements.in": "alpha\n", "requirements.cuda.txt": "alpha==1.0\n"})
    bw("install", suite.path, "--variant", "cuda")
    assert reason(bw, suite) is None


def test_an_environment_made_by_hand_is_trusted(bw: CommandLine, suite: SuiteFolder) -> None:
    suite.add("one", {"requirements.in": "alpha\n"})
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", suite.venv / "one"], check=True)
    assert reason(bw, suite) is None


def test_the_command_names_the_base_where_it_is_not_the_usual_one(
    bw: CommandLine, suite: SuiteFolder, tmp_path: Path
) -> None:
    suite.add("one", {"requirements.in": "alpha\n"})
    said = str(reason(bw, suite, tmp_path / "other base"))
    assert said.endswith(f"--base '{tmp_path}/other base'")


@pytest.mark.parametrize("breaking", ["interpreter", "package", "marker"])
def test_a_broken_environment_is_noticed_before_a_run(bw: CommandLine, suite: SuiteFolder, breaking: str) -> None:
    suite.add("one", {"requirements.in": "alpha\n"})
    bw("install", suite.path)
    environment = suite.venv / "one"
    if breaking == "interpreter":
        (environment / "bin" / "python").unlink()
    elif breaking == "package":
        next(environment.glob("lib/python*/site-packages/alpha.py")).unlink()
    else:
        (environment / ".benchwright.json").unlink()
    assert "is broken" in str(reason(bw, suite))
    assert bw.json("install", suite.path)["groups"][0]["status"] == "built"
    assert reason(bw, suite) is None


def test_what_needs_nothing_runs_at_once(bw: CommandLine, suite: SuiteFolder) -> None:
    suite.add("one", stop={"steps": 5})
    assert reason(bw, suite) is None
    bw("run", suite.path)
