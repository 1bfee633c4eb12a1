"""A test of a specification: what its file says, complete and checked. Placeholders are still in it; planning fills them."""

from __future__ import annotations

from typing import Any

import msgspec

from benchwright.core.artifact import Artifact
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.revision import RevisionInfo

KIND = "spec"
DELAY, ERROR, ACCURACY, POWER, GENERIC = "delay", "error", "accuracy", "power", "generic"
METRICS = (DELAY, ERROR, ACCURACY, POWER, GENERIC)


class SpecInput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One input of a model, with the one shape of this test; -1 is a dimension that the file leaves open."""

    name: str
    shape: tuple[int, ...]
    type: str = "float"


class SpecOutput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"key": "name"}):
    """A file that the program writes, and what to do with it."""

    key: str
    filename: str
    location: str  # may hold placeholders
    converter: SpecConverter | None = None


class SpecConverter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How numbers are read from what a program prints or writes."""

    name: str
    args: dict[str, Any] = {}


class SpecSteps(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Commands around a test, one line each."""

    commands: tuple[str, ...]
    env: dict[str, str] = {}


class SpecPower(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a power test is measured."""

    method: str | None = None
    collection_time_s: float | None = None
    voltage: float | None = None


class SpecTestOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Options of a run that each of its tests keeps; paths are absolute."""

    string_map: dict[str, str] = {}
    shared_libs: tuple[str, ...] = ()
    root_model_dir: str | None = None
    model_cache: str | None = None
    offline: bool = False  # nothing is fetched
    run_type: str = "benchmark"
    regressed_types: tuple[str, ...] = ()


LABELS = ("model", "metric", "framework", "group", "backend", "run_type")  # fields of a test by which it is found


class SpecTest(SpecTestOptions, frozen=True, kw_only=True, omit_defaults=True):
    """One test, after its shapes were expanded. Lines and locations may hold placeholders, which `values` fill."""

    path: str  # of the specification, absolute
    line: int  # where the test begins
    model: str  # the model's name
    identifier: str  # the test's, `{ID}` filled in
    number: int = 0  # of the expanded test, from 0
    metric: str = DELAY
    format: str | None = None
    framework: str | None = None
    group: str | None = None
    category: str | None = None
    description: str | None = None
    iterations: int | None = None
    warmup: int = 0
    commands: tuple[str, ...] = ()  # empty: only inputs are given
    arguments: tuple[str, ...] = ()  # appended to the command: the 2018 form of `commands`, `command_args`, `--backend`
    preprocess: SpecSteps | None = None
    postprocess: SpecSteps | None = None
    first: SpecSteps | None = None  # the model's own preprocess, on its first test: before the first launch
    last: SpecSteps | None = None  # the model's own postprocess, on its last test: after the last launch
    files: tuple[Artifact, ...] = ()  # of the model and of the test
    input_files: tuple[Artifact, ...] = ()
    libraries: tuple[Artifact, ...] = ()
    inputs: tuple[SpecInput, ...] = ()
    outputs: tuple[str, ...] = ()  # names of the model's outputs, in order
    output_files: tuple[SpecOutput, ...] = ()
    goldens: tuple[Artifact, ...] = ()  # expected outputs, by the output's name
    tolerance: dict[str, float] = {}  # metric of the error → its limit
    statistics: tuple[str, ...] = ()
    observer: str | None = None  # the identifier in front of a program's records
    converter: SpecConverter | None = None
    power: SpecPower | None = None
    profiler: dict[str, Any] = {}
    cooldown_s: float = 0.0  # between the launch before and this one
    wait_s: float = 0.0  # `sleep_before_run`
    core_mask: str | None = None  # `taskset`
    core_list: str | None = None  # `cpu-list`
    threads: dict[str, int] = {}  # `OMP_NUM_THREADS` and `MKL_NUM_THREADS`, if the test says them
    log_output: bool = False  # as it comes
    values: dict[str, str] = {}  # what placeholders stand for: the test's own first, then the model's
    programs: dict[str, str] = {}  # name → path or command; the main one is called `program`
    backend: str | None = None
    build_folder: str | None = None  # {BUILDDIR}
    side: str | None = None  # treatment or control
    revision: RevisionInfo | None = None

    def is_regressed(self, kind: str, metric: str) -> bool:
        """Whether a run that looks at regressions marks this sort of record: `NET`, or `NET latency`."""
        return self.run_type == "regress" and not {kind, f"{kind} {metric}"}.isdisjoint(self.regressed_types)

    @property
    def program(self) -> str | None:
        """The main program, if one was given."""
        return self.programs.get("program")


def spec_of(benchmark: Benchmark) -> SpecTest | None:
    """The test that a benchmark is; None for a file that could not be read, and for other kinds."""
    if not benchmark.data or benchmark.kind != KIND:
        return None
    try:
        return msgspec.convert(benchmark.data, SpecTest)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"the stored test is damaged: {error}", where=benchmark.name) from None


def with_spec(benchmark: Benchmark, test: SpecTest) -> Benchmark:
    """The same benchmark with another test, kept in the form in which it is stored."""
    data = msgspec.json.decode(msgspec.json.encode(test))
    return msgspec.structs.replace(benchmark, data=data)
