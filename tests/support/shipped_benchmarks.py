"""The shipped benchmarks, as programs and as modules."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"


def load(name: str, file: str = "main") -> ModuleType:
    """A file of that benchmark as a module. What it imports from its own folder is forgotten again: every one has a main."""
    folder = BENCHMARKS / name
    before, path = set(sys.modules), list(sys.path)
    sys.path[:0] = [str(folder), str(BENCHMARKS / "_shared")]
    try:
        spec = importlib.util.spec_from_file_location(f"shipped_{name}_{file}", folder / f"{file}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # dataclasses look for it there
        spec.loader.exec_module(module)
    finally:
        for added in set(sys.modules) - before:
            if str(getattr(sys.modules[added], "__file__", None) or "").startswith(f"{folder}{os.sep}"):
                del sys.modules[added]
        sys.path[:] = [*path, *({str(BENCHMARKS / "_shared")} - set(path))]  # what is shared may be imported later
    return module


def run(name: str, *argv: str, data: Path, file: str = "main", **environment: str) -> subprocess.CompletedProcess[str]:
    """That program of the benchmark, with one thread, to its end."""
    env: dict[str, Any] = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "OMP_NUM_THREADS": "1",
        "BENCHWRIGHT_DATA_DIR": str(data),
        **environment,
    }
    command = [sys.executable, str(BENCHMARKS / name / f"{file}.py"), *argv]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=110)


def assert_checked(name: str, *argv: str, data: Path) -> list[str]:
    """The benchmark computes what it claims at its smallest size; the lines it said."""
    done = run(name, "--check", "--size", "tiny", *argv, data=data)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines
    assert all(line.startswith("ok") for line in lines), done.stdout
    return lines


def prepare(name: str, *argv: str, data: Path) -> Path:
    """Its data at the smallest size; the folder it names."""
    done = run(name, "--size", "tiny", *argv, data=data, file="prepare")
    assert done.returncode == 0, done.stdout + done.stderr
    return Path(done.stdout.strip())
