"""Runs `python -m benchmodels` as the agent does, and reads the events."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from forked_python import SOURCES, ForkedPython

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
    """Measures in one folder: scripts, streams and builds. With `forked`, `run` takes processes that have imported torch."""

    def __init__(self, folder: Path, forked: ForkedPython | None = None) -> None:
        self.folder = folder
        self.builds = folder / "builds"
        self._forked = forked
        self._count = 0

    def script(self, text: str, name: str = "script.py") -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def start(
        self, script: Path | None = None, *, env: dict[str, str] | None = None, steps: int = 20, **settings: Any
    ) -> Any:
        environment, stream = self._settled(env, steps, settings)
        argv = [sys.executable, "-m", "benchmodels", *([str(script)] if script else [])]
        process = subprocess.Popen(
            argv, cwd=self.folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return process, stream

    def _settled(self, env: dict[str, str] | None, steps: int, settings: dict[str, Any]) -> tuple[dict[str, str], Path]:
        """The environment of a process, and where it will write its events."""
        self._count += 1
        stream = self.folder / f"stream{self._count}.data"
        settings = {"mode": "measure", "builds": str(self.builds), **settings}
        config = {"stream": str(stream), "stop": {"steps": steps}, "warmup": {"steps": 2}, "models": settings}
        own = {"PYTHONPATH": str(SOURCES), "BENCHPROBE_CONFIG": json.dumps(config)}
        return {**os.environ, **own, **(env or {})}, stream

    def finish(self, started: Any) -> Told:
        process, stream = started
        output, errors = process.communicate(timeout=600)
        return Told(process.returncode, output, errors, stream)

    def run(
        self, script: Path | None = None, *, env: dict[str, str] | None = None, steps: int = 20, **settings: Any
    ) -> Told:
        if self._forked is None or script is None:
            return self.finish(self.start(script, env=env, steps=steps, **settings))
        environment, stream = self._settled(env, steps, settings)
        done = self._forked.run(str(script), env=environment, cwd=self.folder)
        return Told(done.returncode, done.stdout, done.stderr, stream)

    def identity(self, script: Path) -> str:
        """Of the one model in it."""
        told = self.run(script, mode="discover")
        (identity,) = {event["identity"] for event in told.all("model")}
        return str(identity)
