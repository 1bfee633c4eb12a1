"""Benchmarks of a suite that cannot run as they are, found before anything is measured."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator

from benchwright.agent.machine.fingerprint import read_machine
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.system import SuitePaths
from benchwright.kinds.suite.dialect import claim
from benchwright.kinds.suite.plan.filled_words import filled_words
from benchwright.kinds.suite.plan.machine_facts import machine_facts
from benchwright.kinds.suite.plan.process_environment import BenchmarkPlace
from benchwright.kinds.suite.read.suite import refuse_unrunnable


def unrunnable(benchmarks: Iterable[Benchmark]) -> Iterator[str]:
    """A sentence for each whose folder, script or benchfile cannot be used. A folder out of git may be cloned later."""
    base = tempfile.gettempdir()  # nothing is written there
    paths = SuitePaths(base=base, data=base, extra=base, cache=base, venv=base, runs=base)
    facts = machine_facts(read_machine(), paths.system)
    for benchmark in benchmarks:
        try:
            if benchmark.folder is not None and (not benchmark.folder.git or os.path.isdir(benchmark.folder.path)):
                refuse_unrunnable([benchmark], before_install=True)
                dialect, own = claim(benchmark.folder.path)
                if dialect is not None and own.follows("run", benchmark.folder.config):
                    place = BenchmarkPlace(benchmark, paths)
                    dialect.plan(benchmark, place, facts, filled_words(benchmark, place, paths, facts).fill)
        except InvalidInput as error:
            yield f"{benchmark.name} cannot run: {error.on_one_line}"
