"""The command line as a user has it, for tests that run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from within import called

from benchwright.cli.main import main


class CommandLine:
    """Runs `benchwright` from `cwd`; everything is kept below `base`.

    It is called within this process; where it must be one of its own, `is_process` is set.
    """

    def __init__(self, base: Path, cwd: Path, is_process: bool = False) -> None:
        self.base = base
        self.cwd = cwd
        self.is_process = is_process
        self.env = {**os.environ, "BENCHWRIGHT_BASE": str(base), "COLUMNS": "80"}

    def argv(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "benchwright", *args]

    def __call__(
        self, *args: str, code: int | None = 0, env: Mapping[str, str] | None = None, timeout: float = 600
    ) -> subprocess.CompletedProcess[str]:
        environment = {**self.env, **(env or {})}
        is_process = self.is_process or args[:1] == ("dev",)  # which becomes the user's shell
        if is_process:
            done = self._start(args, environment, timeout)
        else:
            done = called(lambda: main(list(args)), ["benchwright", *args], environment, self.cwd)
        assert code is None or done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def json(self, *args: str, code: int | None = 0, env: Mapping[str, str] | None = None) -> dict[str, Any]:
        """What `run --json` printed."""
        body: dict[str, Any] = json.loads(self(args[0], "--json", *args[1:], code=code, env=env).stdout)
        return body

    def last_run(self) -> Path:
        return max((self.base / "runs").iterdir(), key=lambda p: p.stat().st_mtime_ns)

    def _start(self, args: tuple[str, ...], env: dict[str, str], timeout: float) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.argv(*args),
            capture_output=True,
            text=True,
            errors="replace",
            cwd=self.cwd,
            env=env,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )


def metric(body: dict[str, Any], name: str, benchmark: int = 0) -> dict[str, Any]:
    """One metric of a run's JSON."""
    found = [m for m in body["results"][benchmark]["metrics"] if m["metric"] == name]
    assert found, f"no {name} in {[m['metric'] for m in body['results'][benchmark]['metrics']]}"
    return dict(found[0])
