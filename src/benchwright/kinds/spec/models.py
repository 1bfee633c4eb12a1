"""Tests that only name inputs, without a program: their model file runs on our runtimes.

The kind of model files reads, plans, gathers and reports them; it is asked through the registry, as anyone would.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from benchmodels.runtimes.registry import FOR_FILES
from benchwright.core.artifact import Artifact
from benchwright.core.benchmark import Benchmark
from benchwright.core.measurement import Measurement
from benchwright.core.model import Model
from benchwright.core.note import Note
from benchwright.core.stop_rule import StopRule, Warmup
from benchwright.kinds.base import Kind
from benchwright.kinds.registry import kind_named
from benchwright.kinds.runtime_names import runtimes_named
from benchwright.kinds.spec.profile import asks_for_profile
from benchwright.kinds.spec.results.goldens import COMPARED, GoldenResults
from benchwright.kinds.spec.setup import paths_here
from benchwright.kinds.spec.spec_test import SpecTest, spec_of, with_spec
from benchwright.options.table import Options
from benchwright.record.base import Gatherer
from benchwright.record.stream_file import Event
from benchwright.record.verdict import LaunchVerdict


def model_kind() -> Kind:
    """The kind of model files."""
    return kind_named("model")


def is_on_runtimes(benchmark: Benchmark) -> bool:
    """Whether it is a model on one of our runtimes, not a program."""
    return isinstance(benchmark.workload, Model)


def model_file_of(test: SpecTest) -> Artifact | None:
    """The file of its model that runtimes load, if there is just one."""
    found = [file for file in test.files if os.path.splitext(file.filename)[1].lower() in FOR_FILES]
    return found[0] if len(found) == 1 else None


def on_runtimes(benchmarks: Sequence[Benchmark], options: Options) -> list[Benchmark]:
    """With each test that has no program replaced by one for each runtime; as it is until its files are fetched."""
    return [made for benchmark in benchmarks for made in _on_runtimes(benchmark, options)]


def _on_runtimes(benchmark: Benchmark, options: Options) -> list[Benchmark]:
    test = spec_of(benchmark)
    file = None if test is None or test.commands else model_file_of(test)
    if test is None or file is None:
        return [benchmark]
    wanted = (*test.files, *test.input_files, *test.goldens)
    here = {group: paths_here(test, files) for group, files in _grouped(test).items()}
    if sum(map(len, here.values())) < len(wanted):
        return [benchmark]  # not fetched yet
    shapes = {each.name: each.shape for each in test.inputs}
    options = msgspec.structs.replace(
        options,
        shapes={**shapes, **options.shapes},
        runtimes=runtimes_named(options.runtimes, options.python),
        profile=options.profile or asks_for_profile(test),
        params=(),
    )
    path = here["files"][file.key]
    read = model_kind().read(path, options)
    return [_test_on(benchmark, test, each, os.path.basename(path), here) for each in read]


def _grouped(test: SpecTest) -> dict[str, tuple[Artifact, ...]]:
    return {"files": test.files, "input_files": test.input_files, "goldens": test.goldens}


def _test_on(
    asked: Benchmark, test: SpecTest, model: Benchmark, filename: str, here: dict[str, dict[str, str]]
) -> Benchmark:
    """`asked` on the runtime that `model` is on."""
    work = model.workload
    assert isinstance(work, Model)
    work = msgspec.structs.replace(
        work,
        class_=test.model,
        types={each.name: each.type for each in test.inputs},
        input_files=here["input_files"],
        goldens=here["goldens"],
        tolerance=test.tolerance,
    )
    made = msgspec.structs.replace(
        asked,
        name=asked.name + model.name.removeprefix(filename),
        workload=work,
        placement=model.placement,
        stop=StopRule(steps=test.iterations) if test.iterations else model.stop,
        warmup=Warmup(steps=test.warmup),
        loop=model.loop,
        notes=(*asked.notes, *model.notes),
        labels={**asked.labels, "backend": work.runtime},
    )
    return with_spec(made, msgspec.structs.replace(test, backend=work.runtime))


class RuntimeGatherer(Gatherer):
    """Gathers as the kind of model files does, and checks the outputs against golden ones."""

    measures_itself = True

    def __init__(self, benchmark: Benchmark) -> None:
        self._model = model_kind().gatherer(benchmark)
        self._goldens = GoldenResults(() if (test := spec_of(benchmark)) is None else test.goldens)

    def add(self, event: Event) -> None:
        if event["event"] == COMPARED:
            self._goldens.add(event)
        else:
            self._model.add(event)

    def measurements(self) -> list[Measurement]:
        return self._model.measurements() + self._goldens.measurements()

    def interpreted(self, found: list[Measurement]) -> list[Measurement]:
        return self._model.interpreted(found)

    def judge(self, found: list[Measurement]) -> LaunchVerdict | None:
        return self._model.judge(found) or self._goldens.judge()

    def notes(self) -> list[Note]:
        return self._model.notes()

    def facts(self) -> dict[str, object]:
        return self._model.facts() | self._goldens.facts()
