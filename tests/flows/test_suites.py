"""Suites run by the command line: where errors point to, what a run may be resumed as, which environment it runs in."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from command_line import CommandLine
from processes import wait_for
from suite_folder import PREPARE, SuiteFolder


@pytest.fixture
def suite(bw: CommandLine, tmp_path: Path) -> SuiteFolder:
    folder = tmp_path / "suite"
    folder.mkdir()
    return SuiteFolder(bw, folder)


BENCH = "a: {definition: ., plan: {method: per_gpu},\n"
WRONG = {  # what the suite says → how the error begins
    BENCH + " argv: {--x: '{cpu_per_gpus}'}}": "suite.yaml:2:14: a: {cpu_per_gpus} is not a placeholder; did you mean",
    BENCH + " argv: [one, 'auto({n_worker}']}": "suite.yaml:2:14: a: 'auto(' is not closed",
    BENCH + " env: {X: 'expr(1 +)'}}": "suite.yaml:2:11: a: 'expr(1 +)': ",
    "_p: {env: {X: '{nope}'}}\n" + BENCH + " inherits: _p}": "suite.yaml:1:15: a: {nope} is not a placeholder",
    BENCH + " requires_capabilities: [gpus > 1]}": "suite.yaml:2:26: a requires 'gpus > 1': unknown name 'gpus'",
    BENCH + " requires_capabilities: [cpu >]}": "suite.yaml:2:26: a requires 'cpu >': not an expression",
    "m:\n  matrix: {k: [1]}\n  job: {name: 'm{k}', definition: ., argv: {--k: '{k}{l}'}}": "suite.yaml:3:50: m1: {l} is",
    BENCH + " server: {argv: {}, ready: ftp:x}}": "suite.yaml:2:28: 'ftp:x' cannot be waited for; write tcp:HOST",
    "a: {definition: ., plan: {method: njobs, n: 99999999}}": "suite.yaml:1:45: 99999999 processes are too many",
    "a: 3": "suite.yaml:1:1: 'a' is 3, not an entry",
    "[a, b]": "suite.yaml:1:1: a suite is a map of entries, this is a list",
    "system: {arch: cuda}": "suite.yaml: is a system file, not a suite; name the suite, and give this with --system",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_told_with_file_line_and_column_and_leaves_no_run(bw: CommandLine, text: str) -> None:
    (bw.cwd / "suite.yaml").write_text(text)
    (bw.cwd / "main.py").write_text("")
    for command in ("plan", "run"):
        assert bw(command, "suite.yaml", code=2).stderr.startswith(f"benchwright: {WRONG[text]}")
    assert list(bw.base.glob("runs/*")) == []


def test_a_word_of_an_override_is_said_to_be_one(bw: CommandLine) -> None:
    (bw.cwd / "suite.yaml").write_text("a: {definition: ., argv: {--x: 1}}")
    (bw.cwd / "main.py").write_text("")
    said = bw("plan", "suite.yaml", "--override", "a.argv.--x={nope}", code=2).stderr
    assert said.startswith("benchwright: --override: a: {nope} is not a placeholder")


def test_a_script_that_is_not_there_is_noted_by_plan(bw: CommandLine) -> None:
    (bw.cwd / "suite.yaml").write_text("a: {definition: .}")
    assert f"note: there is no script {bw.cwd / 'main.py'}" in bw("plan", "suite.yaml").stdout


COMMANDS = """\
_quick: {tags: [quick], max_duration: 60}
sort:
  inherits: _quick
  command: python sort.py --size 1000
  argv: {--batch: 3}
  metrics: {speed: 'Speed: {number} items/s'}
  weight: 2
  env: {COLOUR: red}
  plan: {method: njobs, n: 2}
pipe: {command: 'echo one | tr o O > piped && sleep 0.01', shell: true, tags: [slow]}
words: {command: [sleep, 0.01], labels: {sort: idle}}
loop: {script: sub/loop.py, argv: [--epochs, 1]}
folder: {definition: sub, command: python loop.py, install_group: other}
"""


def test_entries_that_are_commands_and_scripts_have_all_that_entries_have(bw: CommandLine) -> None:
    folder = bw.cwd / "suite"
    (folder / "sub").mkdir(parents=True)
    (folder / "suite.yaml").write_text(COMMANDS)
    (folder / "prepare.py").write_text("raise SystemExit('the suite is no benchmark')\n")
    (folder / "requirements.in").write_text("no-such-package\n")
    (folder / "sort.py").write_text(
        "import os, sys\nprint('Speed: 12.5 items/s', os.environ['COLOUR'], *sys.argv[1:])\n"
    )
    (folder / "sub" / "loop.py").write_text(
        "import benchprobe, os, sys\nprint(os.getcwd(), *sys.argv[1:])\nfor _ in benchprobe.iterate('train', range(9)): pass\n"
    )
    assert bw("validate", "suite/suite.yaml").stdout == "suite/suite.yaml: ok, 5 benchmarks\n"
    body = bw.json("run", "suite/suite.yaml")
    results = {each["benchmark"]: each for each in body["results"]}
    assert {name: each["status"] for name, each in results.items()} == dict.fromkeys(results, "ok")
    assert [x["job"] for x in results["sort"]["launches"]] == ["sort.0", "sort.1"]
    assert {m["value"] for m in results["sort"]["metrics"] if m["metric"] == "speed"} == {12.5}
    assert bw("logs", "last", "sort.0").stdout == "Speed: 12.5 items/s red --size 1000 --batch 3\n"
    assert (folder / "piped").read_text() == "One\n"
    assert bw("logs", "last", "loop").stdout == f"{folder} --epochs 1\n"
    assert bw("logs", "last", "folder").stdout == f"{folder / 'sub'}\n"
    scores = {row["benchmark"]: row for row in bw.json("report", "last", "--format", "json")["score"]["benchmarks"]}
    assert (scores["sort"]["score"], scores["sort"]["weight"]) == (25, 2)
    assert scores["pipe"]["why_none"].startswith("it has no rate to score; a launch takes ")
    assert [b["name"] for b in bw.json("plan", "suite/suite.yaml", "--select", "quick")["benchmarks"]] == ["sort"]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("command: 'x | y'", "1:14: '|' needs a shell; add shell: true, or put it in quotes"),
        ("command: x, script: y", "1:25: an entry has a command or a script, not both; leave one of them out"),
        ("command: x, torchrun: true", "1:14: torchrun starts scripts, not commands; write it into the command"),
        ("command: 'echo {foo}'", "1:14: a: {foo} is not a placeholder"),
        ("command: 3", "1:14: command is 3, not text or a list"),
        ("commnd: x", "1:5: 'commnd' is not a key of an entry; did you mean 'command'?"),
    ],
)
def test_a_command_that_cannot_be_run_is_told_with_its_place(bw: CommandLine, entry: str, said: str) -> None:
    (bw.cwd / "suite.yaml").write_text(f"a: {{{entry}}}")
    assert said in bw("plan", "suite.yaml", code=2).stderr


def test_an_unknown_placeholder_in_the_name_of_a_run_is_refused(bw: CommandLine) -> None:
    said = bw("run", "--run-name", "x.{tim}", "--", "true", code=2).stderr
    assert said == "benchwright: --run-name: {tim} has no meaning in a run's name; use {time}\n"


def interrupted(bw: CommandLine, suite: SuiteFolder) -> None:
    """A run of two benchmarks, ended while the second one runs."""
    process = subprocess.Popen(bw.argv("run", suite.path), cwd=bw.cwd, env=bw.env, stderr=subprocess.PIPE)
    assert wait_for(lambda: any((bw.base / "runs").glob("*/two.D0.data")))
    os.kill(process.pid, signal.SIGTERM)
    _, said = process.communicate(timeout=600)
    assert process.returncode == 130, said


@pytest.fixture
def halfway(bw: CommandLine, suite: SuiteFolder) -> SuiteFolder:
    suite.add("one", stop={"steps": 5}, warmup=2)
    suite.add("two", stop={"steps": 500}, warmup=2)
    interrupted(bw, suite)
    return suite


def test_a_changed_suite_is_not_resumed_and_each_change_is_told_once(bw: CommandLine, halfway: SuiteFolder) -> None:
    halfway.entries["two"]["stop"] = {"steps": 6}
    halfway.write()
    said = bw("run", halfway.path, "--resume", code=2).stderr
    assert "differs: two: stop: steps was 500, is 6; undo the change" in said
    system = bw.cwd / "system.yaml"
    system.write_text("system: {arch: cuda, gpu: {count: 2}}")
    said = bw("run", halfway.path, "--resume", "--system", str(system), code=2).stderr
    assert "suite_paths: system: arch was not set, is cuda; suite_paths: system: gpu_count was not set, is 2" in said


def test_the_same_suite_in_other_lines_from_another_folder_is_resumed(bw: CommandLine, halfway: SuiteFolder) -> None:
    path = Path(halfway.path)
    path.write_text("# a remark\n" + path.read_text())
    bw.cwd = path.parent
    bw.env["BENCHWRIGHT_BASE"] = f"../{bw.base.name}"
    body = json.loads(bw("run", "--json", path.name, "--resume").stdout)
    assert [r["status"] for r in body["results"]] == ["ok", "ok"]
    assert len(list(bw.base.glob("runs/*/one.D0*.data"))) == 1  # it was whole, and is not repeated


def test_a_folder_in_the_place_of_a_stream_is_put_aside(bw: CommandLine, halfway: SuiteFolder) -> None:
    [stream] = bw.base.glob("runs/*/two.D0.data")
    stream.unlink()
    stream.mkdir()
    bw("report", "last")
    assert bw.json("run", "--resume", "last")["status"] == "ok"


def test_requirements_that_were_installed_in_vain_leave_the_environment_from_before_to_run_in(
    bw: CommandLine, suite: SuiteFolder
) -> None:
    place = suite.add("one", {"requirements.in": "alpha<2\n"}, stop={"steps": 5}, warmup=2)
    bw("install", suite.path)
    (place / "requirements.in").write_text("alpha<2\nnothere\n")
    assert "its requirements changed since it was installed" in bw("run", suite.path, "--no-setup", code=3).stderr
    assert "still in use" in bw("install", suite.path, code=1).stderr
    said = "one: its new requirements could not be installed; it ran in the previous environment"
    assert said in [note["text"] for note in bw.json("run", suite.path)["notes"]]
    (place / "requirements.in").write_text("alpha<2\nnothere\nbeta\n")  # this was never tried
    bw("run", suite.path, "--no-setup", code=3)
    tried = bw.json("run", suite.path)
    assert said in [note["text"] for note in tried["notes"]], "installed in vain once more, by run itself"
    (place / "requirements.in").write_text("alpha\n")
    bw("install", suite.path)
    assert said not in [note["text"] for note in bw.json("run", suite.path)["notes"]]


def test_what_several_benchmarks_lack_is_told_once_with_one_command(bw: CommandLine, suite: SuiteFolder) -> None:
    for number in range(7):
        suite.add(f"b{number}", {"requirements.in": "alpha\n"}, folder="shared", install_group="g")
    said = bw("run", suite.path, "--no-setup", code=3).stderr
    assert f"b0, b1, b2 and 4 more: not installed; run: benchwright install {suite.path}\n" in said
    (bw.cwd / "system.yaml").write_text("system: {arch: cpu}")
    said = bw("run", suite.path, "--no-setup", "--system", "system.yaml", "--select", "b1,b2", code=3).stderr
    assert f"b1, b2: not installed; run: benchwright install {suite.path} --select b1,b2 --system s" in said


def test_the_command_that_prepares_has_the_overrides_that_made_it_necessary(
    bw: CommandLine, suite: SuiteFolder
) -> None:
    suite.add("one", {"prepare.py": PREPARE}, argv={"--data": "small"}, stop={"steps": 5}, warmup=2)
    bw("prepare", suite.path)
    override = ("--override", "one.argv.--data=large")
    said = bw("run", suite.path, *override, "--no-setup", code=3).stderr
    command = said.partition("run: benchwright ")[2].split()
    assert command == ["prepare", suite.path, "--select", "one", *override]
    bw(*command)
    bw("run", suite.path, *override)


def test_a_report_can_be_json(bw: CommandLine) -> None:
    bw("run", "--no-store", "--", "true")
    assert json.loads(bw("report", "--json").stdout)["status"] == "ok"
    bw("report", "--json", "--format", "csv", code=2)


def test_a_launch_that_takes_long_is_told_of_where_nothing_can_be_redrawn(bw: CommandLine) -> None:
    said = bw("run", "--no-store", "--", "sleep", "3").stderr
    assert "[1/1] sleep.D0: started" in said


WRITES = """\
import os
from benchprobe import iterate
for name in ("MILABENCH_DATA_DIR", "MILABENCH_DIR_EXTRA", "XDG_CACHE_HOME"):
    open(os.path.join(os.environ[name], "written"), "w").close()
for step in iterate("train", range(9)):
    pass
"""


@pytest.mark.compat
def test_the_folders_a_script_is_told_of_are_there(bw: CommandLine, suite: SuiteFolder) -> None:
    place = suite.add("one", group="g", stop={"steps": 5}, warmup=2)
    (place / "main.py").write_text(WRITES)
    bw("run", suite.path)
    assert all((bw.base / folder / "written").exists() for folder in ("data", "extra/g", "cache"))
