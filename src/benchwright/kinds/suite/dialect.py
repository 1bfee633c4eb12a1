"""The dialect seam: folders and variables as another tool's benchmarks have them. Entry-point group: `benchwright.suite_dialects`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

import msgspec

from benchwright.core.benchmark import Benchmark, Runner
from benchwright.core.errors import BrokenPlugin
from benchwright.core.registry import Registry
from benchwright.kinds.suite.folder_facts import FolderFacts, Phase
from benchwright.kinds.suite.plan.machine_facts import MachineFacts
from benchwright.kinds.suite.plan.process_environment import BenchmarkPlace
from benchwright.kinds.suite.read.stop_rules import LoopRules
from benchwright.kinds.yaml.value_types import Key
from benchwright.plan.process_slots import ProcessSlot

ENTRY_POINT_GROUP = "benchwright.suite_dialects"
Fill = Callable[[str], str]  # fills the placeholders of a word
Variables = dict[str, str | None]  # changes to the environment; None removes


class DialectProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process as a dialect starts it."""

    argv: tuple[str, ...]
    cwd: str | None = None  # None: as without the dialect
    env: Variables = {}
    files: dict[str, str] = {}  # path → text, written before it starts
    data_file: str | None = None  # of lines that it writes to the descriptor $DATA_FD
    dialect: str | None = None  # the stream dialect of those lines


class DialectStep(msgspec.Struct, frozen=True, kw_only=True):
    """One command of a folder's own way to install or prepare."""

    argv: tuple[str, ...]
    cwd: str
    is_install: bool = False  # `argv` is what a package installer is asked to install
    env: Variables = {}
    files: dict[str, str] = {}


class SlurmProfiles(msgspec.Struct, frozen=True):
    """The profiles of one file, by name: words for sbatch."""

    file: str
    profiles: dict[str, tuple[str, ...]]


class DialectPlan(Protocol):
    """The processes of a folder that says itself what to run."""

    @property
    def slots(self) -> list[ProcessSlot]: ...

    def tag(self, slot: ProcessSlot) -> tuple[str, ...]:
        """The parts of its name."""
        ...

    def process(self, slot: ProcessSlot, python: str, stem: str, fill: Fill, *, contained: bool) -> DialectProcess:
        """`stem`: what the names of its files begin with. `contained`: it runs in a container."""
        ...


class SuiteDialect(Protocol):
    """How another tool's suites mean their folders, and what their scripts find around them. Only `facts` has no default."""

    def facts(self, folder: str) -> FolderFacts | None:
        """None: the folder is not in this dialect. Never raises for what it holds: `FolderFacts.refusal` says it."""
        ...

    def templates(self) -> Mapping[str, str]:
        """For `bw new`: the folder of each, whose files end in .template."""
        return {}

    def entry_keys(self) -> Mapping[str, Key]:
        """Keys of an entry, beside the common ones."""
        return {}

    def loop_rules(self, entry: Mapping[str, Any]) -> LoopRules | None:
        """How much to measure, as its own keys say; `stop` and `warmup` of the entry win. Raises Wrong."""
        return None

    def slurm_profiles(self, folder: str) -> SlurmProfiles | None:
        """That lie in `folder`, a suite's or a checkout's, or below it; InvalidInput for a damaged file."""
        return None

    def names(self, place: BenchmarkPlace, benchmark: str) -> dict[str, object]:
        """Names for placeholders of an entry's words, beside the common ones."""
        return {}

    def variables(self, place: BenchmarkPlace, machine: MachineFacts) -> Variables:
        """For every process of any suite's benchmark, in every phase."""
        return {}

    def described(
        self, benchmark: Benchmark, place: BenchmarkPlace, machine: MachineFacts, run: str
    ) -> Callable[[ProcessSlot, int | None, tuple[str, ...] | None], Variables]:
        """The variables that differ between processes: of a slot, its repetition and the tag that a plan gives it."""
        return lambda slot, repeat, tag: {}

    def run(
        self, runner: Runner, program: Sequence[str], stem: str, *, contained: bool, together: bool
    ) -> DialectProcess:
        """The words behind `python` that let the runner of a folder's facts run `program`.

        `contained`: it does not inherit descriptors. `together`: it is measured with other processes at the same time.
        """
        return DialectProcess(argv=tuple(program))

    def plan(self, benchmark: Benchmark, place: BenchmarkPlace, machine: MachineFacts, fill: Fill) -> DialectPlan:
        """For a folder that follows its own way to run. InvalidInput names the place of what cannot be run."""
        raise NotImplementedError

    def follow(
        self,
        phase: Phase,
        benchmark: Benchmark,
        place: BenchmarkPlace,
        machine: MachineFacts,
        python: str,
        stem: str,
        fill: Fill,
        perform: Callable[[DialectStep], int],
    ) -> None:
        """For a folder that follows its own way to install or prepare: hands each step to `perform`, which returns its exit code."""
        raise NotImplementedError


DIALECTS: Registry[Callable[[], SuiteDialect]] = Registry(ENTRY_POINT_GROUP, "dialect")


class Claim(NamedTuple):
    """The dialect that a folder is in, if any, and what it says."""

    dialect: SuiteDialect | None
    facts: FolderFacts


def claim(folder: str) -> Claim:
    """By the first dialect that claims it; defaults for a folder that none claims, or that does not exist yet."""
    for dialect in dialects():
        if (facts := dialect.facts(folder)) is not None:
            return Claim(dialect, facts)
    facts = FolderFacts(folder=os.path.abspath(folder))
    if os.path.isdir(folder) and not os.path.exists(os.path.join(folder, "prepare.py")):
        facts = msgspec.structs.replace(facts, prepare_script=None)
    return Claim(None, facts)


def claiming(folder: str) -> SuiteDialect:
    """The dialect that claims a folder."""
    dialect = claim(folder).dialect
    assert dialect is not None
    return dialect


def variables_of(place: BenchmarkPlace, machine: MachineFacts) -> Variables:
    """Environment variables that are the same for every process of the benchmark, in every phase."""
    variables = place.variables()
    for dialect in dialects():
        variables |= dialect.variables(place, machine)
    return variables


def described(
    benchmark: Benchmark, place: BenchmarkPlace, machine: MachineFacts, run: str
) -> Callable[[ProcessSlot, int | None, tuple[str, ...] | None], Variables]:
    """Variables by which all dialects describe a process to itself."""
    made = [dialect.described(benchmark, place, machine, run) for dialect in dialects()]
    return lambda slot, repeat, tag: {k: v for each in made for k, v in each(slot, repeat, tag).items()}


def dialects() -> tuple[SuiteDialect, ...]:
    """All that are installed and can be loaded."""
    return _loaded(tuple(sys.path))


@cache
def _loaded(path: tuple[str, ...]) -> tuple[SuiteDialect, ...]:
    return tuple(each() for _, each in DIALECTS.load_all() if not isinstance(each, BrokenPlugin))
