"""A folder's own way to install: its steps, done one by one in the environment that is being built."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from benchwright.agent.machine.fingerprint import read_machine
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.system import SuitePaths
from benchwright.environments.builder import RunTool
from benchwright.kinds.suite.dialect import DialectStep, claiming
from benchwright.kinds.suite.plan.filled_words import filled_words
from benchwright.kinds.suite.plan.machine_facts import machine_facts
from benchwright.kinds.suite.plan.process_environment import BenchmarkPlace


def follow_install(
    benchmark: Benchmark,
    paths: SuitePaths,
    python: str,
    run: RunTool,
    install: Callable[[str, Sequence[str]], list[str]],
) -> None:
    """`install` gives the installer's command. InvalidInput names the file where it fails, or asks for what we cannot do."""
    assert benchmark.folder is not None
    assert benchmark.environment is not None
    place, facts = BenchmarkPlace(benchmark, paths), machine_facts(read_machine(), paths.system)
    place.folders["venv"] = os.path.dirname(os.path.dirname(python))  # the one that is being built
    filled = filled_words(benchmark, place, paths, facts)
    for folder in place.made_folders:
        os.makedirs(folder, exist_ok=True)

    def perform(step: DialectStep) -> int:
        words = install(python, step.argv) if step.is_install else step.argv
        own = {name: value for name, value in {**step.env, **filled.env}.items() if value is not None}
        code = run(words, step.cwd, own)
        if code != 0 and step.is_install:
            what = f"its install failed: pip install {' '.join(step.argv):.100}"
            raise InvalidInput(what, where=own_steps, remedy="look at the log")
        return code

    own_steps = benchmark.environment.own_steps
    dialect, stem = claiming(benchmark.folder.path), os.path.join(place.folders["extra"], "install")
    dialect.follow("install", benchmark, place, facts, python, stem, filled.fill, perform)
