"""What any process in a benchmark's environment gets, whichever phase it belongs to."""

from __future__ import annotations

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.machine import Machine
from benchwright.core.node.system import SuitePaths
from benchwright.kinds.suite.error_locations import words_placed
from benchwright.plan.process_slots import ProcessSlot
from benchwright.plan.suite.environment import Configuration, folder_variables, made_folders, program_folders
from benchwright.plan.words.machine_facts import machine_facts
from benchwright.plan.words.suite_words import filled_words


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
    folder = benchmark.folder
    if folder is None:
        raise InvalidInput(f"{benchmark.name} is not of a suite", where=benchmark.source, remedy="name a suite file")
    facts = machine_facts(machine, paths.system)
    with words_placed([benchmark]):
        words = filled_words(benchmark, folder, paths, facts)
    env = folder_variables(folder, paths)
    env["MILABENCH_CONFIG"] = Configuration(benchmark, folder, paths).of(ProcessSlot(devices=facts.devices))
    return SuiteProcess(
        python=paths.python_of(folder.install_group),
        args=words.args,
        cwd=folder.path,
        env=env | words.env,
        path=program_folders(folder, paths),
        folders=made_folders(folder, paths),
    )
