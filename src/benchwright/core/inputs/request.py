"""What the user wants to measure, and how, before any target is read."""

from __future__ import annotations

from typing import Any

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.decision import Decision
from benchwright.core.inputs.spec_options import SpecOptions
from benchwright.core.model import ModelOptions
from benchwright.core.settings import RunSettings
from benchwright.core.stop_rule import StopRule, Warmup


class MeasureOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to measure any benchmark, wherever it was read from. None or empty keeps the benchmark's own setting."""

    stop: StopRule | None = None
    warmup: Warmup | None = None
    loop: str | None = None
    timeout_s: float | None = None
    env: dict[str, str | None] = {}
    cores: tuple[int, ...] | None = None
    jobs: int | None = None
    labels: dict[str, str] = {}
    tags: tuple[str, ...] = ()
    ignore_failure: bool = False

    def applied(self, benchmark: Benchmark) -> Benchmark:
        """`benchmark` with these options applied."""
        replace = msgspec.structs.replace
        placement = benchmark.placement
        if self.cores is not None:
            placement = replace(placement, cores=self.cores)
        if self.jobs is not None:
            placement = replace(placement, jobs=self.jobs)
        return replace(
            benchmark,
            placement=placement,
            stop=self.stop or benchmark.stop,
            warmup=self.warmup or benchmark.warmup,
            loop=self.loop or benchmark.loop,
            timeout_s=benchmark.timeout_s if self.timeout_s is None else self.timeout_s,
            env=benchmark.env | self.env,
            labels=benchmark.labels | self.labels,
            tags=tuple(dict.fromkeys((*benchmark.tags, *self.tags))),
            ignore_failure=benchmark.ignore_failure or self.ignore_failure,
        )


class SuiteRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Options of suites: which entries, on which system, in which base folder."""

    base: str  # the base folder, absolute
    select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()  # a.b=c, as written
    system: str | None = None  # the system file
    use_current_env: str | None = None  # one interpreter for all
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
    """Targets and commands with all their options; the command line and the Python API both make one."""

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
    repeat: int | StopRule | Decision = 1
    warmup_runs: int = 0
    interleave: bool | None = None  # None: if there are several commands
    turn_s: float | None = None
    discard_logs: bool = False
    cold: bool = False
    overlap: bool = False
    lean_cache: bool = False
    lock_clocks: str | None = None  # in MHz, or "auto"
    build_jobs: int | None = None
    max_memory_bytes: int | None = None
    stop_grace_s: float = 30.0
    sample_interval_s: float = 0.5
    seed: int = 0
    echo: bool = False
    remote_dir: str | None = None  # for files sent to machines that do not see the base folder
    on: str | None = None  # the executor, NAME or NAME:ARGUMENT
    platform: str | None = None  # host…, linux…, mac… or android…: every such device
    device_names: tuple[str, ...] = ()  # only these, by name or hash
    excluded_devices: tuple[str, ...] = ()
    keep_env: tuple[str, ...] = ()  # names or globs
    shared: bool = False
    suite: SuiteRequest | None = None
    models: ModelOptions = ModelOptions()
    specs: SpecOptions = SpecOptions()
    params: tuple[str, ...] = ()  # NAME=VALUE,VALUE: sweeps of scripts
    sweep: str = "grid"
    search_dirs: tuple[str, ...] = ()  # folders to look up scripts in
    all_scripts: bool = False  # measure all scripts of folders, however many
    shuffle: bool = False  # the scripts of folders, by the seed
    shard: tuple[int, int] | None = None  # of the scripts of folders: number, from 1, and how many
    same_models: dict[str, tuple[str, ...]] = {}  # targets that were left out, by the one that is the same model
    most_scripts: int | None = 5  # of a folder or pattern, unless all are asked for; None: any number
    builds: str = ""  # the folder of cached builds
    zoos: str = ""  # the folder of environments of zoos' own

    @property
    def names_devices(self) -> bool:
        """Whether it chooses among the devices of the lab."""
        return bool(self.platform or self.device_names or self.excluded_devices)


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """A resolved request: frozen benchmarks, how to run them, and the run's name."""

    benchmarks: tuple[Benchmark, ...]
    settings: RunSettings
    name: str
