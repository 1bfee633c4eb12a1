"""Programs that lie or misbehave, measured through the real command line: each must end with what the truth about it is.

`make lies` runs all of them, with a thousand children where CI has fifty. The programs of a group are the tasks of one task
file, so that each costs a launch and not a start of benchwright.
"""

from __future__ import annotations

import fcntl
import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from command_line import CommandLine
from lies import CASES, DEADLINE, JSON, KILLS, LOG, LOOP, Case

PROGRAMS = Path(__file__).parents[1] / "programs" / "lying" / "programs.py"
OPTIONS = {
    LOG: ("--timeout", "60s"),
    KILLS: ("--timeout", "60s"),
    JSON: ("--timeout", "60s"),
    LOOP: ("--timeout", "30s", "--stop", "30", "--warmup", "3"),
    DEADLINE: ("--timeout", "1s"),
}
SPEED = "patterns = ['^.{0,40}speed (\\\\S+)']\nmetrics = ['speed']\ncompute_method = ['average']\n"
Measured = dict[str, dict[str, Any]]

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc"),
    pytest.mark.xdist_group("lies"),  # else every worker waits until one has run the programs
]


def measured(group: str, folder: Path) -> Measured:
    """What `run --json` says of each of these programs, and of the run."""
    cwd = folder / "cwd"
    cwd.mkdir(parents=True)
    bw = CommandLine(folder / "base", cwd, is_process=True)
    names = [case.name for case in CASES if case.group == group]
    lines = [f"{sys.executable} {PROGRAMS} {name}" for name in names]
    if group == JSON:
        words = [word for line in lines for word in ("-c", line)]
        said = bw("run", "--json", "--metric", "speed=json:speed", *OPTIONS[group], *words, code=None, timeout=400)
    else:
        read = "" if group == LOOP else SPEED
        sections = (f"[{name}]\n{read}command_to_execute = {line}\n" for name, line in zip(names, lines, strict=True))
        (cwd / "tasks.cfg").write_text("\n".join(sections))
        said = bw("run", "--json", "tasks.cfg", *OPTIONS[group], code=None, timeout=400)
    assert "Traceback" not in said.stderr, said.stderr
    assert said.returncode in (0, 1), said.stderr
    body = json.loads(said.stdout)
    again = json.loads(bw("report", "last", "--format", "json").stdout)
    endings = [[(r["benchmark"], r["status"], r["reason"]) for r in run["results"]] for run in (body, again)]
    assert endings[0] == endings[1], "read back from its folder, a run must say the same"
    return dict(zip(names, body["results"], strict=True)) | {"": body}


def measured_all(folder: Path) -> dict[str, Measured | str]:
    """Of every set of programs that is measured together; a text says why there is nothing."""

    def one(number: int, group: str) -> Measured | str:
        try:
            return measured(group, folder / str(number))
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    sets = list(dict.fromkeys(case.group for case in CASES))
    with ThreadPoolExecutor(max_workers=2) as pool:
        return dict(zip(sets, pool.map(one, range(len(sets)), sets), strict=True))


@pytest.fixture(scope="session")
def everything(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> dict[str, Measured | str]:
    """Measured once, by whichever of the test processes comes first; the others wait for what it writes."""
    folder = tmp_path_factory.getbasetemp()
    folder = folder if worker_id == "master" else folder.parent
    found = folder / "lies.json"
    with open(folder / "lies.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not found.exists():
            found.write_text(json.dumps(measured_all(folder / "lies")))
    body: dict[str, Measured | str] = json.loads(found.read_text())
    return body


@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_truth_about(case: Case, everything: dict[str, Measured | str]) -> None:
    results = everything[case.group]
    assert not isinstance(results, str), results
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


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("everything")
def test_nothing_of_them_is_left() -> None:
    left = []
    for process in psutil.process_iter(["cmdline", "status", "ppid"]):
        words = process.info["cmdline"] or []
        if str(PROGRAMS) in words:
            left.append((words[-1], process.info))
    assert left == []


def test_there_are_a_hundred_of_them() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 100
    defined = set(re.findall(r"^def ([a-z_0-9]+)\(\):", PROGRAMS.read_text(), re.MULTILINE)) - {"stream"}
    assert defined == {case.name for case in CASES}
