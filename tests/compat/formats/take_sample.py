"""Measures `subject/` and keeps the run's folder as a sample: `python tests/compat/formats/take_sample.py v2`.

What belongs to the machine it was taken on (paths, names, environment) is replaced; the numbers stay as they were.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from benchwright.core.machine import Machine

HERE = Path(__file__).parent
SUBJECT = HERE / "subject"
# Fixed warm-up and stop rule: the same steps, so the same columns, wherever it runs.
ARGS = ("run", "tasks.cfg", "--warmup", "12", "--stop", "290", "--label", "purpose=sample")
FOLDER = "/home/user/benchwright/runs/sample"
_NEUTRAL_MACHINE: dict[str, Any] = {
    "hostname": "node",
    "cpu": "Some CPU",
    "kernel": "6.0",
    "virtual": None,
    "accelerators": [],
}
_KEPT_VARIABLES = ("LANG", "PYTHONPATH")


def measure(base: Path) -> Path:
    """Runs the command line from the subject's folder copied aside, as a repository; returns the run's folder."""
    cwd = base / "cwd"
    cwd.mkdir(parents=True)
    for path in SUBJECT.iterdir():
        if path.is_file():
            (cwd / path.name).write_bytes(path.read_bytes())
    who = ["-c", "user.name=user", "-c", "user.email=user@example.test", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], [*who, "commit", "-qm", "sample"]):
        subprocess.run(["git", *words], cwd=cwd, check=True)
    env = {**os.environ, "BENCHWRIGHT_BASE": str(base)}
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
    subprocess.run([sys.executable, "-m", "benchwright", *ARGS], cwd=cwd, env=env, check=True, capture_output=True)
    (run,) = (base / "runs").iterdir()
    return run


def take(run: Path, base: Path, target: Path) -> None:
    """Copies the run's files to `target`, without what they tell of this machine."""
    target.mkdir()
    raw = json.loads((run / "machine.json").read_text())
    machine = msgspec.convert(raw | _NEUTRAL_MACHINE, Machine)
    replaced = {
        str(run): FOLDER,
        run.name: "sample",
        str(base / "cwd"): "/home/user/project",
        str(base): "/home/user/benchwright",
        sys.prefix: "/home/user/venv",
        sys.base_prefix: "/usr",
        str(HERE.parents[2]): "/home/user/checkout",
        raw["fingerprint"]: machine.fingerprint,
    }
    for path in sorted(run.iterdir()):
        if path.name == "lock":
            continue
        if path.suffix == ".gz":
            (target / path.name).write_bytes(path.read_bytes())
            continue
        text = path.read_text()
        for old, new in replaced.items():
            text = text.replace(old, new)
        if path.suffix == ".data":
            text = "".join(_neutral_event(json.loads(line)) + "\n" for line in text.splitlines())
        elif path.name == "machine.json":
            text = _formatted(json.loads(text) | _NEUTRAL_MACHINE)
        elif path.name == "packages.json":
            text = _formatted(_few_packages(json.loads(text)))
        elif path.name == "provenance.json":
            text = _formatted(_neutral_history(json.loads(text)))
        elif path.name == "run.json":
            body = json.loads(text)
            text = _formatted(body | {"revisions": _of_subject(body["revisions"])})
        (target / path.name).write_text(text)


def _neutral_event(event: dict[str, Any]) -> str:
    if event["event"] == "start":
        event["env"] = {name: value for name, value in event["env"].items() if name in _KEPT_VARIABLES}
    return json.dumps(event, separators=(",", ":"))


def _few_packages(body: dict[str, Any]) -> dict[str, Any]:
    few = {python: dict(list(found.items())[:3]) for python, found in body["environments"].items()}
    return body | {"environments": few}


def _neutral_history(body: dict[str, Any]) -> dict[str, Any]:
    began = body["began"]
    began["variables"] = {name: value for name, value in began["variables"].items() if name in _KEPT_VARIABLES}
    began["repositories"] = _of_subject(began["repositories"])
    began["packages"] = {python: dict(list(found.items())[:3]) for python, found in began["packages"].items()}
    return body


def _of_subject(repositories: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without benchwright's own, which is there if it is installed as editable."""
    return [each for each in repositories if each["root"] == "/home/user/project"]


def _formatted(body: dict[str, Any]) -> str:
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        take(measure(Path(scratch)), Path(scratch), HERE / sys.argv[1])
