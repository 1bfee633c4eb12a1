"""install and prepare: killed at any moment, twice at once, without room or rights. Doing it again completes it."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import CommandLine
from local_wheels import make_source, make_wheel
from processes import carrying, wait_for
from suite_folder import PREPARE, SuiteFolder

PY = sys.executable
MARKER = ".benchwright.json"


@pytest.fixture
def suite(bw: CommandLine, tmp_path: Path) -> SuiteFolder:
    folder = tmp_path / "suite"
    folder.mkdir()
    return SuiteFolder(bw, folder)


def started(bw: CommandLine, *args: str, mark: str = "") -> subprocess.Popen[str]:
    return subprocess.Popen(
        bw.argv(*args),
        cwd=bw.cwd,
        env={**bw.env, "TEST_MARKER": mark},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


# Each is code that makes the process kill itself at one point of an install.
POINTS = {
    "before the environment is created": "builder.EnvironmentBuilder._make = lambda *_: die()",
    "while it is created": "tools.subprocess.Popen = dying_after(1)",
    "while packages are installed": "tools.subprocess.Popen = dying_after(2)",
    "before it is marked as finished": "builder.write_built = lambda *_: die()",
    "while the mark is written": "environment.os.fsync = lambda *_: die()",
    "between the mark and the link": "environment.EnvironmentFolders.switch = lambda *_: die()",
    "while the link is switched": "environment.os.symlink = then_die(environment.os.symlink)",
    "after the link, before the old ones are removed": "environment.EnvironmentFolders.remove_old = lambda *_, **__: die()",
}
SETTING = """
import os, signal, subprocess, sys, time
from benchwright.environments import builder, environment, tools
def die():
    os.kill(os.getpid(), signal.SIGKILL)
def then_die(function):
    def wrapped(*args):
        function(*args)
        die()
    return wrapped
real = subprocess.Popen
def dying_after(count):
    left = [count]
    def start(*args, **options):
        process = real(*args, **options)
        left[0] -= 1
        if not left[0]:
            time.sleep(0.03)
            die()
        return process
    return start
"""


QUICK = {"while packages are installed", "between the mark and the link"}


@pytest.mark.parametrize(
    "point", [pytest.param(point, marks=() if point in QUICK else pytest.mark.long) for point in POINTS]
)
def test_an_install_killed_at_any_point_keeps_the_old_environment_and_completes_the_next_time(
    bw: CommandLine, suite: SuiteFolder, point: str
) -> None:
    place = suite.add("one", {"requirements.in": "alpha<2\n"})
    bw("install", suite.path)
    (place / "requirements.in").write_text("gamma\n")
    code = f"{SETTING}{POINTS[point]}\nfrom benchwright.cli.main import main\nmain(['install', sys.argv[1]])"
    killed = subprocess.run([PY, "-c", code, suite.path], env=bw.env, cwd=bw.cwd, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert suite.version("alpha", "one") == ("2.0" if "after the link" in point else "1.0")
    bw("install", suite.path)
    assert suite.version("gamma", "one") == "1.0"
    left = suite.environments()
    assert len(left) <= 2
    assert all((suite.venv / ".environments" / name / MARKER).exists() for name in left)


@pytest.mark.long
def test_installs_killed_at_random_moments_are_completed_by_the_next(bw: CommandLine, suite: SuiteFolder) -> None:
    for name in ("one", "two", "three"):
        suite.add(name, {"requirements.in": "beta\n"})
    chance = random.Random(4)
    for _ in range(8):
        process = started(bw, "install", suite.path, "--force")
        time.sleep(chance.uniform(0.2, 1.5))
        process.kill()
        process.communicate()
    bw("install", suite.path)
    assert [suite.version("beta", name) for name in ("one", "two", "three")] == ["1.0"] * 3
    store = suite.venv / ".environments"
    assert all((store / name / MARKER).exists() for name in suite.environments())


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_an_interrupted_install_ends_its_tools_and_changes_nothing(
    bw: CommandLine, suite: SuiteFolder, tmp_path: Path, number: signal.Signals
) -> None:
    building = tmp_path / "building"
    sleep = f"import os, time; open({str(building)!r}, 'w').close(); time.sleep(600)"
    make_source(suite.packages, "slow", "1.0", sleep)
    place = suite.add("one", {"requirements.in": "alpha<2\n"})
    bw("install", suite.path)
    (place / "requirements.in").write_text("slow\n")
    mark = f"{os.getpid()}-install-{number}"
    process = started(bw, "install", suite.path, mark=mark)
    assert wait_for(building.exists)
    os.kill(process.pid, number)
    _, said = process.communicate()
    assert process.returncode == 130
    assert "run the same command again" in said
    assert wait_for(lambda: not carrying(f"TEST_MARKER={mark}"))
    assert suite.version("alpha", "one") == "1.0"
    assert len(suite.environments()) == 1


def test_a_killed_install_leaves_no_tool_running(bw: CommandLine, suite: SuiteFolder, tmp_path: Path) -> None:
    building = tmp_path / "building"
    make_source(suite.packages, "slow", "1.0", f"import time; open({str(building)!r}, 'w').close(); time.sleep(3)")
    place = suite.add("one", {"requirements.in": "slow\n"})
    mark = f"{os.getpid()}-killed"
    process = started(bw, "install", suite.path, mark=mark)
    assert wait_for(building.exists)
    process.kill()
    process.communicate()
    (place / "requirements.in").write_text("alpha\n")
    bw("install", suite.path)  # waits for what the killed one left, and removes what that made
    assert not carrying(f"TEST_MARKER={mark}")
    assert suite.version("alpha", "one") == "2.0"
    assert len(suite.environments()) == 1


def test_two_installs_at_once_make_one_environment(bw: CommandLine, suite: SuiteFolder) -> None:
    suite.add("one", {"requirements.in": "beta\n"})
    both = [started(bw, "install", suite.path, "--json") for _ in range(2)]
    said = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(json.loads(text)["groups"][0]["status"] for text in said) == ["built", "reused"]
    assert len(suite.environments()) == 1
    assert suite.version("beta", "one") == "1.0"


def test_a_base_that_cannot_be_written_is_said_with_a_remedy(
    bw: CommandLine, suite: SuiteFolder, tmp_path: Path
) -> None:
    suite.add("one", {"requirements.in": "alpha\n"})
    suite.add("two", {"prepare.py": PREPARE})
    (tmp_path / "file").write_text("")
    below = str(tmp_path / "file" / "base")
    for phase, name in (("install", "one"), ("prepare", "two")):
        done = bw(phase, suite.path, "--select", name, "--base", below, code=3)
        assert "--base" in done.stderr
        assert "Traceback (most recent call last)" not in done.stderr


def test_a_disk_that_fills_up_during_an_install_is_said_and_the_old_environment_stays(
    bw: CommandLine, suite: SuiteFolder, small_disk: Path
) -> None:
    make_wheel(suite.packages, "large", "1.0", module="x = '" + "0" * 6_000_000 + "'\n")
    place = suite.add("one", {"requirements.in": "alpha\n"})
    bw("install", suite.path, "--base", str(small_disk))
    (place / "requirements.in").write_text("large\n")
    done = bw("install", suite.path, "--base", str(small_disk), code=1)
    assert re.search("one: the disk is full; the previous environment is still in use", done.stderr)
    python = small_disk / "venv" / "one" / "bin" / "python"
    assert subprocess.run([python, "-c", "import alpha"]).returncode == 0
    (place / "requirements.in").write_text("gamma\n")
    bw("install", suite.path, "--base", str(small_disk))


WAIT = """\
import os, pathlib, sys, time
data = pathlib.Path(os.environ["BENCHWRIGHT_DATA_DIR"])
with (data / "runs").open("a") as runs:
    runs.write("x")
(data / "half").mkdir(exist_ok=True)
while not (data / "go").exists():
    time.sleep(0.02)
(data / "whole").write_text("")
"""


def marks(suite: SuiteFolder) -> list[str]:
    return [p.name for p in (suite.data / ".prepared").glob("*.json*")]


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)]
)
def test_a_preparation_that_is_cut_off_is_not_trusted_and_leaves_no_process(
    bw: CommandLine, suite: SuiteFolder, number: signal.Signals
) -> None:
    suite.add("one", {"prepare.py": WAIT})
    mark = f"{os.getpid()}-prepare-{number}"
    process = started(bw, "prepare", suite.path, mark=mark)
    assert wait_for((suite.data / "half").exists)
    os.kill(process.pid, number)
    process.communicate()
    assert process.returncode == (-signal.SIGKILL if number is signal.SIGKILL else 130)
    assert wait_for(lambda: not carrying(f"TEST_MARKER={mark}"))
    assert marks(suite) == []
    assert "not prepared" in bw("run", suite.path, "--no-setup", code=3).stderr
    (suite.data / "go").write_text("")
    assert bw.json("prepare", suite.path)["benchmarks"][0]["status"] == "prepared"
    assert len(marks(suite)) == 1
    assert (suite.data / "runs").read_text() == "xx"


def test_a_forced_preparation_that_is_cut_off_takes_the_old_mark_with_it(bw: CommandLine, suite: SuiteFolder) -> None:
    suite.add("one", {"prepare.py": WAIT})
    suite.data.mkdir(parents=True)
    (suite.data / "go").write_text("")
    bw("prepare", suite.path)
    (suite.data / "go").unlink()
    process = started(bw, "prepare", suite.path, "--force")
    assert wait_for(lambda: (suite.data / "runs").read_text() == "xx")
    process.kill()
    process.communicate()
    assert marks(suite) == []


def test_two_preparations_at_once_run_the_script_once(bw: CommandLine, suite: SuiteFolder) -> None:
    suite.add("one", {"prepare.py": WAIT})
    both = [started(bw, "prepare", suite.path, "--json") for _ in range(2)]
    assert wait_for((suite.data / "half").exists)
    time.sleep(0.5)
    (suite.data / "go").write_text("")
    said = [process.communicate()[0] for process in both]
    assert sorted(json.loads(text)["benchmarks"][0]["status"] for text in said) == ["prepared", "reused"]
    assert (suite.data / "runs").read_text() == "x"


def test_a_damaged_mark_means_prepared_again(bw: CommandLine, suite: SuiteFolder) -> None:
    suite.add("one", {"prepare.py": PREPARE})
    bw("prepare", suite.path)
    (suite.data / ".prepared" / marks(suite)[0]).write_bytes(b'{"format":1,"bench')
    assert bw.json("prepare", suite.path)["benchmarks"][0]["status"] == "prepared"
