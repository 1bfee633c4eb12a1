"""`benchwright ab`: two revisions of a target, measured by turns, with one verdict in every format."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from xml.etree import ElementTree

import pytest
from command_line import CommandLine
from local_wheels import make_wheel
from processes import wait_for
from small_repository import SmallRepository
from specifications import written

SPEED = ("--metric", "speed[MB,higher]=kv:speed")  # by its unit a size: other load on this machine does not disturb it
SIX = ("--repeat", "6", "-q")
BENCH = "import speed\nprint(f'speed={speed.SPEED}')\n"


@pytest.fixture
def repository(bw: CommandLine) -> SmallRepository:
    """A program whose speed is another one at each commit; the command line is run from there."""
    made = SmallRepository(bw.cwd / "repository")
    made.commit("First", {"bench.py": BENCH, "speed.py": "SPEED = 100\n", ".gitignore": "__pycache__\nbuild/\n"})
    made.git("tag", "v1")
    made.commit("Slower", {"speed.py": "SPEED = 90\n"})
    bw.cwd = made.folder
    return made


def test_the_verdict_on_a_terminal(bw: CommandLine) -> None:
    done = bw("ab", "--control", "args:100", "--treatment", "args:90", *SPEED, *SIX, "--", "echo", "speed=", code=1)
    lines = done.stdout.splitlines()
    assert lines[:2] == [" control    args:100", " treatment  args:90"]
    (row,) = [line.split() for line in lines if line.startswith(" echo") and "regressed" in line]
    assert row[:6] == ["echo", "speed", "-10.0", "%", "[-10.0,", "-10.0]"]
    assert row[6:8] == ["▼", "regressed"]
    assert row[9:] == ["×", "2"]
    assert " peak memory of echo is not compared (too small and short to measure)" in lines
    (dots,) = [line for line in lines if line.startswith(" speed")]
    zero = next(line.index(" 0 ") + 1 for line in lines if " 0 " in line and "%" in line)
    assert "⁝" in dots[len(" speed") : zero]  # every pair is on the side of the slower
    assert not dots[zero + 1 :].strip()
    assert max(map(len, lines[:-1])) <= 80
    assert lines[-2].startswith(" 1 regressed")
    assert lines[-1] == f" saved: {bw.last_run()}"  # whole, however long: it is there to be copied


@pytest.mark.parametrize(
    ("control", "treatment", "command"),
    [
        ("env:N=100", "env:N=90", ("--", "sh", "-c", "echo speed=$N")),
        ("bin:./fast", "bin:./slow", ("--", "app")),
        ("cmd:echo speed=100", "cmd:echo speed=90", ()),
    ],
)
def test_every_sort_of_revision(bw: CommandLine, control: str, treatment: str, command: tuple[str, ...]) -> None:
    for name, speed in (("fast", 100), ("slow", 90)):
        (bw.cwd / name).write_text(f"#!/bin/sh\necho speed={speed}\n")
        (bw.cwd / name).chmod(0o755)
    body = bw.json("ab", "--control", control, "--treatment", treatment, *SPEED, "--repeat", "6", *command, code=1)
    (effect,) = [e for e in body["effects"] if e["metric"] == "speed"]
    assert (effect["ratio"], effect["verdict"], effect["beside"]) == (pytest.approx(0.9), "regressed", False)
    assert set(effect["pairs"]) == {0.9}
    assert (body["control"], body["treatment"], body["verdict"], body["exit_code"]) == (
        control,
        treatment,
        "regressed",
        1,
    )


LOOP = "import benchprobe\nfor _ in benchprobe.iterate('train', range(40)):\n    sum(range(10_000))\n"
OBSERVED = 'echo \'PyTorchObserver {"type": "NET", "metric": "memory", "unit": "MB", "value": "5"}\''


@pytest.mark.parametrize(
    ("target", "about"),
    [(("--", "echo", "speed=5"), "speed"), (("loop.py",), "rate"), (("spec.json",), "memory")],
)
def test_every_kind_of_target_has_the_rows_that_commands_have(
    bw: CommandLine, target: tuple[str, ...], about: str
) -> None:
    (bw.cwd / "loop.py").write_text(LOOP)
    (bw.cwd / "observed.sh").write_text(OBSERVED)
    written(bw.cwd / "spec.json", None, {"identifier": "t", "iter": 1, "commands": ["sh {program}"]})
    options = SPEED if about == "speed" else ("--program", "observed.sh") if about == "memory" else ("--stop", "never")
    body = bw.json(
        "ab", "--control", "env:N=1", "--treatment", "env:N=1", *options, "--repeat", "6", *target, code=None
    )
    beside = {effect["metric"]: effect["beside"] for effect in body["effects"]}
    assert beside[about] is False
    assert (beside["process.duration"], beside["process.cpu_time"]) == (True, True)


def test_a_commit_against_the_working_tree_with_all_its_changes(bw: CommandLine, repository: SmallRepository) -> None:
    (repository.folder / "speed.py").write_text("from newer import SPEED\n")
    (repository.folder / "newer.py").write_text("SPEED = 120\n")  # which git does not know yet
    before = repository.git("status", "--porcelain")
    args = ("--control", "v1", *SPEED, *SIX, "--", "python", "bench.py")
    first = bw("ab", *args)
    assert "improved" in first.stdout
    assert " control    v1 (" in first.stdout
    assert "First)" in first.stdout
    assert "Slower, with uncommitted changes)" in first.stdout
    assert repository.git("status", "--porcelain") == before
    assert repository.git("log", "--oneline", "--branches", "--tags").count("\n") == 1
    run = json.loads(bw("show", "last", "--json").stdout)
    assert {
        r["labels"]["side"]: r["labels"]["commit"] == repository.git("rev-parse", "v1") for r in run["results"]
    } == {
        "control": True,
        "treatment": False,
    }
    assert set(run["labels"]) == {"control", "treatment"}
    again = bw(
        "ab", "--control", "v1", "--treatment", "HEAD", *SPEED, "--repeat", "6", "--", "python", "bench.py", code=1
    )
    assert "uncommitted changes are not measured" in again.stderr
    assert again.stderr.count("checking it out") == 1  # the control is known
    assert "-10.0 % [-10.0, -10.0]" in again.stdout


def test_commits_of_a_repository_elsewhere(bw: CommandLine, repository: SmallRepository) -> None:
    bw.cwd = repository.folder.parent
    words = ("--repo-dir", "repository", "--control", "v1", "--treatment", "HEAD", *SPEED, *SIX)
    assert "-10.0 %" in bw("ab", *words, "--", "python", "./bench.py", code=1).stdout
    (repository.folder / "new.py").write_text("")
    assert "has no ./new.py" in bw("ab", *words, "--", "python", "./new.py", code=2).stderr


def test_each_side_is_built_once_in_its_own_environment(bw: CommandLine, repository: SmallRepository) -> None:
    build = "cp speed.py built_speed.py; python -c 'import sys; print(sys.prefix)'"
    repository.commit("Built", {"bench.py": BENCH.replace("import speed", "import built_speed as speed")})
    repository.git("tag", "built")
    repository.commit("Slow again", {"speed.py": "SPEED = 45\n"})
    args = ("ab", "--control", "built", "--treatment", "HEAD", "--build", build, *SPEED, "--repeat", "6")
    done = bw(*args, "bench.py", "--as", "command", code=1)
    assert done.stderr.count("building: ") == 2
    assert "-50.0 %" in done.stdout
    assert not (repository.folder / "built_speed.py").exists()
    reused = bw(*args, "bench.py", "--as", "command", code=1)
    assert "building: " not in reused.stderr


@pytest.mark.long
def test_two_versions_of_a_package_are_two_environments(bw: CommandLine) -> None:
    wheels = bw.cwd / "wheels"
    for version, speed in (("1.0", 100), ("2.0", 90)):
        make_wheel(wheels, "quickly", version, module=f"SPEED = {speed}\n")
    (bw.cwd / "bench.py").write_text("import quickly\nprint(f'speed={quickly.SPEED}')\n")
    sides = ("--control", "pip:quickly==1.0", "--treatment", "pip:quickly==2.0")
    local = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    body = bw.json("ab", *sides, *SPEED, "--repeat", "6", "--", "python", "bench.py", env=local, code=1)
    assert (body["control"], body["treatment"]) == (
        "pip:quickly==1.0 (quickly 1.0)",
        "pip:quickly==2.0 (quickly 2.0)",
    )
    (effect,) = [e for e in body["effects"] if e["metric"] == "speed"]
    assert (effect["control"], effect["treatment"], effect["verdict"]) == (100, 90, "regressed")
    there_is_none = bw("ab", "--control", "pip:quickly==3.0", "--", "python", "bench.py", env=local, code=None)
    assert "pip:quickly==3.0 could not be installed" in there_is_none.stderr
    assert there_is_none.returncode == 3


def test_a_real_slow_down_is_found(bw: CommandLine) -> None:
    spin = (
        "import sys, time\nend = time.process_time() + 0.03 * int(sys.argv[1])\nwhile time.process_time() < end: pass\n"
    )
    (bw.cwd / "spin.py").write_text(spin)
    sides = ("--control", "args:1", "--treatment", "args:3")
    body = bw.json("ab", *sides, "--metric", "process.cpu_time", "--repeat", "6", "--", "python", "spin.py", code=1)
    (effect,) = body["effects"]
    assert (effect["metric"], effect["verdict"]) == ("process.cpu_time", "regressed")
    assert effect["ratio"] > 1.4


def test_the_same_on_both_sides_says_nothing_but_the_noise(bw: CommandLine) -> None:
    done = bw("ab", "--control", "args:5", "--treatment", "args:5", *SPEED, "--repeat", "6", "--", "echo", "speed=")
    assert "= same (within 1 %)" in done.stdout
    assert "echo speed: changes of less than about 0.0 % go unseen here" in done.stdout
    assert "an A/A" in done.stderr
    assert bw.json("show", "last")["labels"]["comparison"] == "A/A"


def test_every_format_has_the_verdict_and_the_doubt(bw: CommandLine) -> None:
    files = ("-o", "x.html", "-o", "x.json", "-o", "x.csv", "--markdown", "x.md", "--junit", "x.xml")
    sides = ("--control", "args:100", "--treatment", "args:90", "--notify", "github:comment.md")
    bw("ab", *sides, *SPEED, *SIX, *files, "--", "sh", "-c", "sleep 0.01; echo speed=$0", code=1)
    read = {name: (bw.cwd / name).read_text() for name in ("x.html", "x.json", "x.csv", "x.md", "x.xml", "comment.md")}
    doubts = json.loads(read["x.json"])["doubts"]
    assert "| `sh` | `speed` | 100 MB → 90 MB | -10.0 % \\[-10.0, -10.0\\] | 🔴 regressed |" in read["x.md"]
    assert "<!-- benchwright: ab sh -->" in read["comment.md"]
    assert "regressed" in read["x.html"]
    assert "sh,speed" in read["x.csv"]
    for doubt in doubts:
        for name in ("x.md", "x.csv", "x.html", "comment.md"):
            assert doubt.split(" (")[0].rpartition(": ")[2] in read[name].replace("\\", ""), name
    cases = {case.get("name"): case for case in ElementTree.fromstring(read["x.xml"]).iter("testcase")}
    assert cases["speed"].find("failure") is not None


def test_the_verdict_is_the_same_when_the_run_is_read_again(bw: CommandLine) -> None:
    body = bw.json(
        "ab", "--control", "args:100", "--treatment", "args:90", *SPEED, "--repeat", "6", "--", "echo", "speed=", code=1
    )
    between = json.loads(bw("compare", "last", "--between", "echo control", "echo treatment", "--json").stdout)
    for ours, theirs in zip(body["effects"], between["effects"], strict=True):
        assert {**ours, "benchmark": ""} == {**theirs, "benchmark": ""}
    assert body["margin"] == between["margin"]
    shown = bw.json("show", "last")["comparisons"]
    assert [e["verdict"] for c in shown for e in c["effects"]] == [e["verdict"] for e in body["effects"]]


def test_a_treatment_that_fails_has_regressed_and_a_control_that_fails_leaves_nothing(bw: CommandLine) -> None:
    command = ("--", "sh", "-c", "exit $N")
    lost = bw("ab", "--control", "env:N=0", "--treatment", "env:N=7", *SIX, *command, code=1)
    assert "exit code 7" in lost.stdout
    bw("ab", "--control", "env:N=7", "--treatment", "env:N=0", *SIX, *command, code=3)
    bw("ab", "--control", "env:N=7", "--treatment", "env:N=8", *SIX, *command, code=3)
    (bw.cwd / "tasks.cfg").write_text(
        "[good]\ncommand_to_execute = true\n[bad]\ncommand_to_execute = sh -c 'exit $N'\n"
    )
    one = bw(
        "ab", "--control", "env:N=7", "--treatment", "env:N=0", *SIX, "--metric", "memory.peak_rss", "tasks.cfg", code=3
    )
    assert "bad control: nothing was measured" in one.stdout


REFUSED = [
    (("--", "true"), "--control: there is nothing to compare with; name it, such as --control main"),
    (("v1", "--", "true", "a b"), "v1: is no target; to compare commits: benchwright ab --control v1 -- true 'a b'"),
    (("v1", "HEAD", "--", "true"), "to compare commits: benchwright ab --control v1 --treatment HEAD -- true"),
    (("--control", "gti:main", "--", "true"), "'gti:' is no sort of revision; did you mean 'git'?"),
    (("--control", "nowhere", "--", "true"), "there is no commit 'nowhere'"),
    (("--control", "cmd:true", "--", "true"), "write cmd:COMMAND for both"),
    (("--control", "cmd:true", "--treatment", "cmd:true", "--", "true"), "two commands need no target"),
    (("--control", "env:N", "--", "true"), "'N' sets no variable; write env:NAME=VALUE"),
    (("--control", "bin:./gone", "--", "true"), "there is no program './gone'"),
    (("--control", "env:N=1", "--build", "make", "--", "true"), "--build: is for commits, and none is compared"),
    (("--control", "v1", "--", "python", "later.py"), "has no later.py; keep it outside of the repository"),
    (("--control", "v1", "--", "build/app"), "git ignores build/app: both sides would run the same program"),
    (("--control", "v1", "--treatment", "HEAD", "--budget", "soon", "--", "true"), "'soon' is not a duration"),
    (("--control", "v1", "-o", "none/x.md", "--", "true"), "there is no folder"),
    (("--control", "v1", "--stop", "3", "gone.py"), "gone.py: no such file"),
]


def test_wrong_input_is_refused_with_what_to_do(bw: CommandLine, repository: SmallRepository) -> None:
    repository.commit("Later", {"later.py": "print('speed=1')\n"})
    (repository.folder / "build").mkdir()
    (repository.folder / "build/app").write_text("#!/bin/sh\n")
    for words, said in REFUSED:
        assert said in bw("ab", *words, code=2).stderr, words
    assert not (bw.base / "runs").exists()


def test_files_that_git_ignores_are_used_where_they_are_and_told(bw: CommandLine, repository: SmallRepository) -> None:
    (repository.folder / "build").mkdir()
    (repository.folder / "build/data.txt").write_text("speed=5\n")
    done = bw("ab", "--control", "v1", "--repeat", "6", *SPEED, "--", "cat", "build/data.txt")
    assert "build/data.txt is not part of v1" in done.stderr
    assert "same (within 1 %)" in done.stdout


def test_what_was_killed_in_the_middle_goes_on_with_the_same_pairs(bw: CommandLine) -> None:
    program = "echo $N >> launches; [ $(wc -l < launches) -eq 4 ] && [ ! -e go ] && sleep 60; echo speed=$N"
    args = ("--control", "env:N=100", "--treatment", "env:N=90", "--seed", "3", *SPEED, *SIX, "--", "sh", "-c", program)
    launches = bw.cwd / "launches"
    (bw.cwd / "go").touch()
    whole = bw.json("ab", *args, code=1)
    order = launches.read_text().split()
    launches.unlink()
    (bw.cwd / "go").unlink()
    process = subprocess.Popen(bw.argv("ab", *args), cwd=bw.cwd, env=bw.env)
    assert wait_for(lambda: launches.exists() and len(launches.read_text().split()) == 4)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=600)
    (bw.cwd / "go").touch()
    body = bw.json("ab", "--resume", code=1)
    made = launches.read_text().split()
    assert made[:4] + made[5:] == order  # the launch that died with it was repeated
    assert made[4] == order[3]
    assert body["effects"][0]["pairs"] == whole["effects"][0]["pairs"]
    assert body["verdict"] == whole["verdict"] == "regressed"
