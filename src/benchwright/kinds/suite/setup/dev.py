"""`dev`: a shell, or one command, where a benchmark runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from benchwright.agent.machine.fingerprint import read_machine
from benchwright.artifacts.probe_folder import probe_folder
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.kinds.suite.setup.process import suite_process
from benchwright.kinds.suite.setup.readiness import not_installed
from benchwright.kinds.suite.suites import read_benchmarks, suite_paths_of
from benchwright.options.table import Options


class DevSession(msgspec.Struct, frozen=True):
    """The shell to replace this process with."""

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    benchmark: str


def development_session(
    targets: Sequence[str], suite: Options, command: Sequence[str], tell: Callable[[str], None] | None = None
) -> DevSession:
    """`command` empty: the user's shell. `tell` gets what was repaired. InvalidInput unless exactly one installed benchmark is selected."""
    benchmark = _one(read_benchmarks(targets, suite))
    paths = suite_paths_of(suite, [benchmark])
    for why in not_installed([benchmark], paths).values():
        raise InvalidInput(f"{benchmark.name}: {why}")
    process = suite_process(benchmark, paths, read_machine())
    env = dict(os.environ)
    for name, value in process.env.items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = value
    for folder in process.folders:
        with suppress(OSError):
            os.makedirs(folder, exist_ok=True)
    probe = str(probe_folder(Path(paths.base) / "artifacts", tell))
    for name, folders in (("PATH", process.path), ("PYTHONPATH", (probe,))):
        env[name] = os.pathsep.join([*folders, *filter(None, [env.get(name)])])
    shell = env.get("SHELL") or "/bin/sh"
    return DevSession(tuple(command) or (shell,), process.cwd, env, benchmark.name)


def _one(benchmarks: Sequence[Benchmark]) -> Benchmark:
    """The selected benchmark; any of them if all share a folder and an environment."""
    if not benchmarks:
        raise InvalidInput("no benchmark is selected", where="--select", remedy="name one")
    places = {(b.environment.folder, b.environment.name) for b in benchmarks if b.environment is not None}
    if len(places) > 1:
        names = ", ".join(b.name for b in benchmarks[:8]) + (" …" if len(benchmarks) > 8 else "")
        raise InvalidInput(
            f"{len(benchmarks)} benchmarks are selected, and a shell has one folder",
            where="--select",
            remedy=f"name one of {names}",
        )
    return benchmarks[0]
