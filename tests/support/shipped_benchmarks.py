"""The shipped benchmarks, as programs and as modules."""

from __future__ import annotations

import importlib.util
import os
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from within import called

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
        _forget(before, folder)
        sys.path[:] = [*path, *({str(BENCHMARKS / "_shared")} - set(path))]  # what is shared may be imported later
    return module


def run(name: str, *argv: str, data: Path, file: str = "main", **environment: str) -> subprocess.CompletedProcess[str]:
    """That program of the benchmark, with one thread, to its end, as a process of its own."""
    command = [sys.executable, str(BENCHMARKS / name / f"{file}.py"), *argv]
    env = {**_environment(data), **environment}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)


def run_here(name: str, *argv: str, data: Path, file: str = "main") -> subprocess.CompletedProcess[str]:
    """The same within this process, which has imported torch: not for what starts or becomes other processes."""
    folder = BENCHMARKS / name
    program = str(folder / f"{file}.py")
    before = set(sys.modules)
    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch else 0

    def work() -> None:
        sys.path.insert(0, str(folder))
        runpy.run_path(program, run_name="__main__")

    try:
        if torch:
            torch.set_num_threads(1)
        return called(work, [program, *argv], _environment(data))
    finally:
        if torch:
            torch.set_num_threads(threads)
        _forget(before, folder)


def checked_lines(name: str, *argv: str, data: Path, is_process: bool = False) -> list[str]:
    """The benchmark computes what it claims at its smallest size; the lines it said."""
    done = (run if is_process else run_here)(name, "--check", "--size", "tiny", *argv, data=data)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines
    assert all(line.startswith("ok") for line in lines), done.stdout
    return lines


def prepare(name: str, *argv: str, data: Path) -> Path:
    """Its data at the smallest size; the folder it names."""
    done = run_here(name, "--size", "tiny", *argv, data=data, file="prepare")
    assert done.returncode == 0, done.stdout + done.stderr
    return Path(done.stdout.strip())


def _environment(data: Path) -> dict[str, str]:
    env = {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "BENCHWRIGHT_DATA_DIR": str(data)}
    return {**os.environ, **env}


def _forget(before: set[str], folder: Path) -> None:
    """What was imported from that benchmark's folder: others have modules of the same names."""
    for added in set(sys.modules) - before:
        if str(getattr(sys.modules[added], "__file__", None) or "").startswith(f"{folder}{os.sep}"):
            del sys.modules[added]
