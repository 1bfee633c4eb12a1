"""Programs that lie or misbehave, measured through the real command line: each must end with what the truth about it is.

`make lies` runs all of them, with a thousand children where CI has fifty. The programs of a group are the tasks of one task
file, so that each costs a launch and not a start of benchwright. A few are tried on every change, the others are long.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from command_line import CommandLine
from lies import CASES, DEADLINE, JSON, KILLS, LOG, LOOP, QUICK, Case
from made_once import MadeOnce

PROGRAMS = Path(__file__).parents[1] / "programs" / "lying" / "programs.py"
HELPERS = {"stream", "outlive_the_program", "tells_of_my_loop"}
OPTIONS = {
    LOG: ("--timeout", "300s"),
    KILLS: ("--timeout", "300s"),
    JSON: ("--timeout", "300s"),
    LOOP: ("--timeout", "300s", "--stop", "30", "--warmup", "3"),
    DEADLINE: ("--timeout", "1s"),
}
SPEED = "patterns = ['^.{0,40}speed (\\\\S+)']\nmetrics = ['speed']\ncompute_method = ['average']\n"
Measured = dict[str, dict[str, Any]]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def measured(group: str, cases: list[Case], folder: Path) -> Measured:
    """What `run --json` says of each of these programs, and of the run."""
    cwd = folder / "cwd"
    cwd.mkdir(parents=True)
    bw = CommandLine(folder / "base", cwd, is_process=True)
    names = [case.name for case in cases]
    lines = [f"{sys.executable} {PROGRAMS} {name}" for name in names]
    if group == JSON:
        words = [word for line in lines for word in ("-c", line)]
        said = bw("run", "--json", "--metric", "speed=json:speed", *OPTIONS[group], *words, code=None)
    else:
        read = "" if group == LOOP else SPEED
        sections = (f"[{name}]\n{read}command_to_execute = {line}\n" for name, line in zip(names, lines, strict=True))
        (cwd / "tasks.cfg").write_text("\n".join(sections))
        said = bw("run", "--json", "tasks.cfg", *OPTIONS[group], code=None)
    assert "Traceback" not in said.stderr, said.stderr
    assert said.returncode in (0, 1), said.stderr
    body = json.loads(said.stdout)
    bw.is_process = False
    again = json.loads(bw("report", "last", "--format", "json").stdout)
    assert left_of_them(folder) == []
    endings = [[(r["benchmark"], r["status"], r["reason"]) for r in run["results"]] for run in (body, again)]
    assert endings[0] == endings[1], "read back from its folder, a run must say the same"
    return dict(zip(names, body["results"], strict=True)) | {"": body}


def left_of_them(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """Programs that were started in this folder and still run, whatever they did to their environment."""
    left = []
    for process in psutil.process_iter(["cmdline", "cwd", "status"]):
        words = process.info["cmdline"] or []
        if str(PROGRAMS) in words and (process.info["cwd"] or "").startswith(f"{folder}/"):
            left.append((words[-1], process.info))
    return left


def set_of(case: Case) -> str:
    """Those of one set are measured together, once for all workers."""
    if case.name not in QUICK:
        return case.group
    return "quick-loops" if case.group == LOOP else "quick"


@pytest.fixture
def results(case: Case, made_once: MadeOnce) -> Measured:
    """Of the set that this program is one of."""
    which = set_of(case)
    cases = [each for each in CASES if set_of(each) == which]

    def measure(folder: Path) -> None:
        (folder / "measured.json").write_text(json.dumps(measured(case.group, cases, folder)))

    found: Measured = json.loads((made_once(f"lies-{which}", measure) / "measured.json").read_text())
    return found


def marks(case: Case) -> list[pytest.MarkDecorator]:
    group = pytest.mark.xdist_group(f"lies {set_of(case)}")  # else every worker waits until one has run the programs
    return [group] if case.name in QUICK else [group, pytest.mark.long]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name, marks=marks(case)) for case in CASES])
def test_the_truth_about(case: Case, results: Measured) -> None:
    result = results[case.name]
    whole = f"{case.name}: {result['status']} {result['reason']} {result['detail']}"
    assert result["status"] == case.status, whole
    assert result["reason"] in case.reasons, whole
    metric = "rate" if case.group == LOOP else "speed"
    values = [m["value"] for m in result["metrics"] if m["metric"] == metric and "rank" not in m["labels"]]
    if case.value is None:
        assert values == [], whole
    else:
        assert len(values) == 1, f"{whole}: {values}"
        assert case.value[0] <= values[0] <= case.value[1], f"{whole}: {values}"
    if case.said is not None:
        notes = [note["text"] for launch in result["launches"] for note in launch["notes"]]
        of_run = [note["text"] for note in results[""]["notes"]]
        said = " | ".join([result["detail"] or "", *result["notes"], *notes, *of_run])
        assert re.search(re.escape(case.said), said), f"{whole}: {said}"


def test_of_each_kind_some_are_tried_on_every_change() -> None:
    quick = [case for case in CASES if case.name in QUICK]
    assert len(quick) == len(QUICK)
    assert {LOG, KILLS, LOOP} <= {case.group for case in quick}
    assert {case.status for case in quick} == {"ok", "failed"}


def test_there_are_a_hundred_of_them() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 100
    defined = set(re.findall(r"^def ([a-z_0-9]+)\(\):", PROGRAMS.read_text(), re.MULTILINE)) - HELPERS
    assert defined == {case.name for case in CASES}
