"""The seam between what a user names and Benchmarks. Entry-point group: `benchwright.kinds`; one contract test."""

from __future__ import annotations

from typing import Protocol

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.metric import MetricSpec
from benchwright.core.model import ModelOptions
from benchwright.core.task_overrides import TaskOverrides

ENTRY_POINT_GROUP = "benchwright.kinds"


class SourceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says about the targets. A source uses what concerns it."""

    names: tuple[str, ...] = ()  # --task: only these; empty: all
    metrics: tuple[MetricSpec, ...] = ()  # --metric: read these too
    tasks: TaskOverrides = TaskOverrides()
    script_args: tuple[str, ...] = ()
    python: str | None = None  # the interpreter for scripts
    cwd: str | None = None
    as_: str | None = None  # how to measure a script: loop, models or command
    select: tuple[str, ...] = ()  # of a suite: only these names, groups or tags
    exclude: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()  # of a suite: a.b=c, as written
    models: ModelOptions = ModelOptions()
    builds: str = ""  # the folder of cached builds of models
    points: tuple[dict[str, str], ...] = ({},)  # of a sweep: parameters of a script
    definitions: str = ""  # of a suite: the folder for definitions that are cloned from git


class Source(Protocol):
    """Reads one kind of target. Reading starts nothing and writes nothing."""

    @property
    def name(self) -> str:
        """What `--format` calls it."""
        ...

    def recognises(self, target: str) -> bool:
        """Whether `target` is of this kind, told from its content where it can be; never raises."""
        ...

    def read(self, target: str, options: SourceOptions) -> list[Benchmark]:
        """The benchmarks in `target`, in its order; InvalidInput says where it is wrong and what to do."""
        ...
