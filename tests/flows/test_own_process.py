"""The command line as a process of its own. Other flows call it within theirs: it must say the same in both."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from command_line import CommandLine

SUITE = "one: {definition: one, plan: {method: njobs, n: 1}}\n"
pytestmark = pytest.mark.xdist_group("own process")  # one worker: they look at the same runs


@pytest.fixture(scope="module")
def bw(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """Two runs by processes of their own, and a suite."""
    folder = tmp_path_factory.mktemp("process")
    (folder / "one").mkdir()
    (folder / "one" / "main.py").write_text("print('é')")
    (folder / "suite.yaml").write_text(SUITE)
    bw = CommandLine(folder / "base", folder, is_process=True)
    for label in ("a=é", "b=2"):
        said = bw("run", "--repeat", "2", "--label", label, "--metric", "x=kv:x", "--", "echo", "x=1", "é").stdout
        assert "saved:" in said
    bw("baseline", "set", "main")
    return bw


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("rum", 2),
        ("show last", 0),
        ("plan suite.yaml --use-current-env", 0),
        *(
            pytest.param(line, code, marks=pytest.mark.long)
            for line, code in (
                ("", 0),
                ("--help", 0),
                ("runs", 0),
                ("show nothing", 2),
                ("logs last", 0),
                ("report --format html", 0),
                ("compare echo last", 2),
                ("baseline list", 0),
                ("diff-env last last", None),
                ("store check", 0),
                ("validate suite.yaml", 0),
                ("resolve suite.yaml", 0),
                ("export --output -", None),
            )
        ),
    ],
)
def test_it_says_the_same_within_another(bw: CommandLine, line: str, code: int | None) -> None:
    own = bw(*line.split(), code=code)
    here = CommandLine(bw.base, bw.cwd)(*line.split(), code=code)
    assert own.returncode == here.returncode
    assert own.stdout.replace("python -m benchwright", "benchwright") == here.stdout
    assert own.stderr.replace("python -m benchwright", "benchwright") == here.stderr
    assert "Traceback" not in own.stderr


def test_a_run_records_the_same_within_another(bw: CommandLine) -> None:
    argv = ("run", "--no-store", "--json", "--", sys.executable, "-c", "import os; print(os.getcwd())")
    own, here = (json.loads(line(*argv).stdout) for line in (bw, CommandLine(bw.base, bw.cwd)))
    assert keys_of(own) == keys_of(here)
    logs = [bw("logs", body["id"]).stdout for body in (own, here)]
    assert logs[0] == logs[1]
    assert logs[0].endswith(f"{bw.cwd}\n")


def keys_of(body: object, place: str = "") -> set[str]:
    """Without notes: a machine may be busy in one run and not in the other."""
    if isinstance(body, dict):
        return {key for name, value in body.items() if name != "notes" for key in keys_of(value, f"{place}.{name}")}
    if isinstance(body, list):
        return {key for value in body for key in keys_of(value, f"{place}[]")}
    return {place}


def test_what_it_says_can_go_into_a_pipe_that_is_closed_early(bw: CommandLine) -> None:
    done = subprocess.run(
        ["sh", "-c", '"$@" | head -c 1', "sh", *bw.argv("report", "--format", "html")],
        cwd=bw.cwd, env=bw.env, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("<", "")
