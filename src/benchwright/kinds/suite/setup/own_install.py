"""A benchfile's own way to install: its steps, done one by one in the environment that is being built."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from benchwright.agent.machine.fingerprint import read_machine
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.node.system import SuitePaths
from benchwright.environments.building import RunTool
from benchwright.kinds.suite.benchfile.benchfile import BENCHFILE
from benchwright.kinds.suite.benchfile.child import Action, ask_benchfile
from benchwright.kinds.suite.plan.filled_words import filled_words
from benchwright.kinds.suite.plan.machine_facts import machine_facts
from benchwright.kinds.suite.plan.obeyed import request_of, started_words
from benchwright.kinds.suite.plan.process_environment import BenchmarkPlace


def follow_install(
    benchmark: Benchmark,
    paths: SuitePaths,
    python: str,
    run: RunTool,
    install: Callable[[str, Sequence[str]], list[str]],
) -> None:
    """`install` gives the installer's command. InvalidInput names the benchfile where it fails, or asks for what we cannot do."""
    assert benchmark.folder is not None
    path = os.path.join(benchmark.folder.path, BENCHFILE)
    place, facts = BenchmarkPlace(benchmark, paths), machine_facts(read_machine(), paths.system)
    place.folders["venv"] = os.path.dirname(os.path.dirname(python))  # the one that is being built
    filled = filled_words(benchmark, place, paths, facts)
    for folder in place.made_folders:
        os.makedirs(folder, exist_ok=True)

    def perform(action: Action) -> int:
        if action.do == "requirements":  # of the whole group, and installed by now
            return 0
        if action.do == "conda":
            raise InvalidInput("its install asks for conda", where=path, remedy="name what it needs in requirements.in")
        pip = action.do == "pip"
        words = install(python, action.argv) if pip else started_words(action.argv, python, filled.fill)
        folders = {k: v for k, v in place.variables(facts).items() if v is not None and k.startswith("MILABENCH_")}
        own = {name: value for name, value in {**action.env, **filled.env}.items() if value is not None}
        code = run(words, action.cwd, {**folders, **own})
        if code != 0 and pip:
            what = f"its install failed: pip install {' '.join(action.argv):.100}"
            raise InvalidInput(what, where=path, remedy="look at the log")
        return code

    ask_benchfile(path, "install", request_of(benchmark, place, facts), perform, filled.fill)
