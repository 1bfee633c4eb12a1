"""What a user asks to have measured, before any target was read."""

from __future__ import annotations

from typing import Any

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.inputs.options import MeasureOptions
from benchwright.core.model import ModelOptions
from benchwright.core.settings import RunSettings
from benchwright.core.stop_rule import StopRule


class SuiteRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is said about suites: which entries, on which system, out of which base folder."""

    base: str  # the base folder, absolute
    select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()  # a.b=c, as written
    system: str | None = None  # the system file
    use_current_env: str | None = None  # the interpreter to use for all
    validations: tuple[str, ...] = ()
    size: str | None = None  # auto, optimized, default or a number
    capacity: str | None = None
    scaling_file: str | None = None
    save_scaling: str | None = None
    options: dict[str, Any] = {}  # of a multirun: sizer.auto, cpu.n_workers…

    @property
    def definitions(self) -> str:
        """The folder for definitions that are cloned from git."""
        return f"{self.base}/extra/.definitions"


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Targets and commands with everything said about them; the command line and the Python API both make one."""

    targets: tuple[str, ...] = ()
    command: tuple[str, ...] = ()  # the words after --
    lines: tuple[str, ...] = ()  # commands as one text each
    shell: bool = False
    setup: str | None = None  # commands as one text each
    prepare: tuple[str, ...] = ()  # one for all benchmarks, or one for each
    cleanup: str | None = None
    name: str | None = None
    metrics: tuple[str, ...] = ()  # as written: NAME[options]=PATTERN
    format: str | None = None
    as_: str | None = None
    script_args: tuple[str, ...] = ()
    python: str | None = None
    cwd: str | None = None
    tasks: tuple[str, ...] = ()
    task_options: dict[str, Any] = {}
    set_flags: tuple[str, ...] = ()
    remove_flags: tuple[str, ...] = ()
    options: MeasureOptions = MeasureOptions()
    repeat: int | StopRule = 1
    warmup_runs: int = 0
    interleave: bool | None = None  # None: only several commands
    turn_s: float | None = None
    discard_logs: bool = False
    sample_interval_s: float = 0.5
    seed: int = 0
    echo: bool = False
    on: str | None = None  # the executor, NAME or NAME:ARGUMENT
    keep_env: tuple[str, ...] = ()  # names or globs
    shared: bool = False
    suite: SuiteRequest | None = None
    models: ModelOptions = ModelOptions()
    params: tuple[str, ...] = ()  # NAME=VALUE,VALUE: sweeps of scripts
    sweep: str = "grid"
    search_dirs: tuple[str, ...] = ()  # where scripts that are named lie
    all_scripts: bool = False  # all of them
    builds: str = ""  # the folder of cached builds


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """What a request comes to: frozen benchmarks, how to run them, and what to call the run."""

    benchmarks: tuple[Benchmark, ...]
    settings: RunSettings
    name: str
