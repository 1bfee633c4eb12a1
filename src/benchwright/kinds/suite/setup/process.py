"""Environment of any process of a benchmark, whichever phase it belongs to."""

from __future__ import annotations

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.machine import Machine
from benchwright.core.system import SuitePaths
from benchwright.kinds.suite.dialect import described, variables_of
from benchwright.kinds.suite.error_locations import words_placed
from benchwright.kinds.suite.plan.filled_words import filled_words
from benchwright.kinds.suite.plan.machine_facts import machine_facts
from benchwright.kinds.suite.plan.process_environment import BenchmarkPlace
from benchwright.plan.process_slots import ProcessSlot


class SuiteProcess(msgspec.Struct, frozen=True):
    """`env` holds changes to the caller's environment; `path` goes in front of $PATH."""

    python: str
    args: tuple[str, ...]
    cwd: str
    env: dict[str, str | None]
    path: tuple[str, ...]
    folders: tuple[str, ...]  # to be there before it starts


def suite_process(benchmark: Benchmark, paths: SuitePaths, machine: Machine) -> SuiteProcess:
    """With the benchmark's own words, all placeholders filled."""
    place, facts = BenchmarkPlace(benchmark, paths), machine_facts(machine, paths.system)
    with words_placed([benchmark]):
        words = filled_words(benchmark, place, paths, facts)
    command = described(benchmark, place, facts, "prepare")(ProcessSlot(devices=facts.devices), None, None)
    return SuiteProcess(
        python=place.python,
        args=words.args,
        cwd=place.folder.path,
        env={**variables_of(place, facts), **command, **words.env},
        path=place.program_folders,
        folders=place.made_folders,
    )
