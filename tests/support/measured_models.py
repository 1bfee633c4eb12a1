"""Runs `python -m benchmodels` as the agent does, and reads the events."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).parents[2] / "src"

Event = dict[str, Any]


class Told:
    """The events that a process left."""

    def __init__(self, code: int, output: str, errors: str, stream: Path) -> None:
        self.code, self.output, self.errors = code, output, errors
        lines = stream.read_text().splitlines() if stream.exists() else []
        self.events: list[Event] = [json.loads(line) for line in lines]

    def all(self, kind: str, **where: Any) -> list[Event]:
        return [e for e in self.events if e["event"] == kind and all(e.get(k) == v for k, v in where.items())]

    def one(self, kind: str, **where: Any) -> Event:
        found = self.all(kind, **where)
        assert len(found) == 1, f"{kind} {where}: {found}\n{self.events}\n{self.errors}"
        return found[0]

    def figure(self, metric: str) -> float:
        (value,) = self.one("measured", metric=metric)["values"]
        return float(value)

    @property
    def steps(self) -> dict[str, bool]:
        """The steps of the build, and whether they were of an earlier one."""
        return {event["step"]: event["cached"] for event in self.all("build_step")}

    @property
    def measured_calls(self) -> int:
        return sum(len(event["step_ns"]) for event in self.all("steps", phase="measured"))

    @property
    def messages(self) -> str:
        return "\n".join(event["text"] for event in self.all("message"))


class Models:
    """Measures in one folder: scripts, streams and builds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.builds = folder / "builds"
        self._count = 0

    def script(self, text: str, name: str = "script.py") -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def start(
        self, script: Path | None = None, *, env: dict[str, str] | None = None, steps: int = 20, **settings: Any
    ) -> Any:
        self._count += 1
        stream = self.folder / f"stream{self._count}.data"
        settings = {"mode": "measure", "builds": str(self.builds), **settings}
        config = {"stream": str(stream), "stop": {"steps": steps}, "warmup": {"steps": 2}, "models": settings}
        environment = {**os.environ, "PYTHONPATH": str(SOURCES), "BENCHPROBE_CONFIG": json.dumps(config), **(env or {})}
        argv = [sys.executable, "-m", "benchmodels", *([str(script)] if script else [])]
        process = subprocess.Popen(
            argv, cwd=self.folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return process, stream

    def finish(self, started: Any) -> Told:
        process, stream = started
        output, errors = process.communicate(timeout=600)
        return Told(process.returncode, output, errors, stream)

    def run(self, script: Path | None = None, **options: Any) -> Told:
        return self.finish(self.start(script, **options))

    def identity(self, script: Path) -> str:
        """Of the one model in it."""
        told = self.run(script, mode="discover")
        (identity,) = {event["identity"] for event in told.all("model")}
        return str(identity)
