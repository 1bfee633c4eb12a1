"""Runs small programs under the probe in processes of their own, and reads what they recorded."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from forked_python import ForkedPython

from benchprobe.stream.events import given_values

SOURCE = Path(__file__).parents[3] / "src"
GIVEN_WARMUP = {"steps": 0}

Event = dict[str, Any]


class Recorded:
    """A finished program, and the stream it left."""

    def __init__(self, code: int, output: str, errors: str, stream: Path) -> None:
        self.code = code
        self.output = output
        self.errors = errors
        self.junk: list[str] = []
        self.events: list[Event] = []
        for line in stream.read_text().splitlines() if stream.is_file() else []:
            try:
                self.events.append(json.loads(line))
            except ValueError:
                self.junk.append(line)

    def all(self, kind: str, **where: Any) -> list[Event]:
        return [e for e in self.events if e["event"] == kind and all(e.get(k) == v for k, v in where.items())]

    def one(self, kind: str, **where: Any) -> Event:
        (found,) = self.all(kind, **where)
        return found

    def loop(self, name: str) -> int:
        return self.all("loop", name=name)[0]["loop"]

    def steps(self, name: str = "train", phase: str | None = None, process: int | None = None) -> int:
        """How many steps of that loop were recorded; they must be numbered without gaps."""
        numbers = {(e["process"], e["loop"]) for e in self.all("loop", name=name)}
        found = [e for e in self.all("steps") if (e["process"], e["loop"]) in numbers]
        if process is not None:
            found = [e for e in found if e["process"] == process]
        return sum(len(e["step_ns"]) for e in found if phase in (None, e["phase"]))

    def given(self, name: str, loop: str = "train") -> list[tuple[int, Any]]:
        """(step, value) of everything given under that name in that loop, in the order of the stream."""
        number = self.loop(loop)
        return [
            (event["first"] + offset, value)
            for event in self.all("steps", loop=number)
            if name in event.get("given", {})
            for offset, value in zip(*given_values(event["given"][name], len(event["step_ns"])), strict=True)
        ]

    def messages(self) -> str:
        return "\n".join(e["text"] for e in self.all("message"))


class Programs:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stream = folder / "job.data"

    def environment(self, config: dict[str, Any] | None, **more: str) -> dict[str, str]:
        env = {k: v for k, v in os.environ.items() if not k.startswith("BENCHPROBE")}
        env["PYTHONPATH"] = str(SOURCE)
        if config is not None:
            env["BENCHPROBE_CONFIG"] = json.dumps({"stream": str(self.stream), "warmup": GIVEN_WARMUP, **config})
        return env | more

    def write(self, program: str, name: str = "program.py") -> Path:
        path, text = self.folder / name, textwrap.dedent(program)
        if not path.exists() or path.read_text() != text:  # else one that was just started could find it empty
            path.write_text(text)
        return path

    def start(self, program: str, *, python: str = sys.executable, env: dict[str, str] | None = None,
              pass_fds: tuple[int, ...] = (), arguments: tuple[str, ...] = (),
              **config: Any) -> subprocess.Popen[str]:  # fmt: skip
        argv = [python, str(self.write(program)), *arguments]
        return subprocess.Popen(argv, cwd=self.folder, env=self.environment(config) | (env or {}), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=pass_fds)  # fmt: skip

    def finish(self, process: subprocess.Popen[str]) -> Recorded:
        try:
            output, errors = process.communicate(timeout=600)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            raise
        return Recorded(process.returncode, output, errors, self.stream)

    def run(self, program: str, **options: Any) -> Recorded:
        """The program's record; it must end well."""
        recorded = self.finish(self.start(program, **options))
        assert recorded.code == 0, recorded.errors
        return recorded


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    return Programs(tmp_path)


@pytest.fixture
def measured_with_torch(programs: Programs, forked_python: ForkedPython) -> Callable[..., Recorded]:
    """The same for programs with torch, in a process that has imported it."""

    def run(program: str, *, env: dict[str, str] | None = None, **config: Any) -> Recorded:
        variables = programs.environment(config) | (env or {})
        done = forked_python.run(str(programs.write(program)), env=variables, cwd=programs.folder, plainly=True)
        assert done.returncode == 0, done.stderr
        return Recorded(done.returncode, done.stdout, done.stderr, programs.stream)

    return run


@pytest.fixture
def measured(programs: Programs) -> Callable[..., Recorded]:
    """`measured(program, stop={"steps": 5})`: runs it under the probe, to a good end."""
    return programs.run
