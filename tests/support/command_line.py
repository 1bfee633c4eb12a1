"""The command line as a user has it, for tests that run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class CommandLine:
    """Runs `benchwright` from `cwd`; everything is kept below `base`."""

    def __init__(self, base: Path, cwd: Path) -> None:
        self.base = base
        self.cwd = cwd
        self.env = {**os.environ, "BENCHWRIGHT_BASE": str(base), "COLUMNS": "80"}

    def argv(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "benchwright", *args]

    def __call__(
        self, *args: str, code: int | None = 0, env: Mapping[str, str] | None = None, timeout: float = 100
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.argv(*args),
            capture_output=True,
            text=True,
            errors="replace",
            cwd=self.cwd,
            env={**self.env, **(env or {})},
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )
        assert code is None or done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def json(self, *args: str, code: int | None = 0, env: Mapping[str, str] | None = None) -> dict[str, Any]:
        """What `run --json` printed."""
        body: dict[str, Any] = json.loads(self(args[0], "--json", *args[1:], code=code, env=env).stdout)
        return body

    def last_run(self) -> Path:
        return max((self.base / "runs").iterdir(), key=lambda p: p.stat().st_mtime_ns)


def metric(body: dict[str, Any], name: str, benchmark: int = 0) -> dict[str, Any]:
    """One metric of a run's JSON."""
    found = [m for m in body["results"][benchmark]["metrics"] if m["metric"] == name]
    assert found, f"no {name} in {[m['metric'] for m in body['results'][benchmark]['metrics']]}"
    return dict(found[0])
