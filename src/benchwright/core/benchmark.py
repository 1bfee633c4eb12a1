"""A Benchmark: frozen and fully resolved, whatever it was read from."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from benchwright.core.benchmark_folder import BenchmarkFolder
from benchwright.core.environment import Environment
from benchwright.core.metric import MetricSpec
from benchwright.core.model import Model, ModelScript
from benchwright.core.stop_rule import StopRule, Warmup


class Command(msgspec.Struct, frozen=True, kw_only=True, tag="command"):
    """Any program: an argv, or one line for a shell when `shell` is asked for."""

    usual_kind: ClassVar[str] = "command"
    variant: ClassVar[tuple[str, ...]] = ()  # what tells it from another workload of the same words

    argv: tuple[str, ...]
    cwd: str
    shell: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """What is executed, as it is written; for a shell its one line."""
        return self.argv


class Hooks(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Commands around the launches of a benchmark: once before the first, before each, and once after the last."""

    setup: Command | None = None
    prepare: Command | None = None
    cleanup: Command | None = None


class Script(msgspec.Struct, frozen=True, kw_only=True, tag="script"):
    """A Python script whose loop is measured; `python` is the interpreter to use.

    `training`: nothing in it is instrumented, and its training steps are recognised as it runs.
    """

    usual_kind: ClassVar[str] = "script"
    variant: ClassVar[tuple[str, ...]] = ()
    shell: ClassVar[bool] = False

    path: str
    args: tuple[str, ...]
    cwd: str
    python: str
    training: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        return (*filter(None, (self.python, self.path)), *self.args)  # an interpreter may still be to be chosen


Workload = Command | Script | ModelScript | Model


Few = Annotated[int, Meta(ge=0, le=1 << 16)]  # processes, devices or machines


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """Where the processes of one launch go.

    `jobs` processes run together, on each of `machines`; each is pinned to `cores` if given. `per_device`: one
    process for each accelerator instead. `needs_devices` more than the machine has: skipped, with the reason.
    """

    jobs: Few = 1
    needs_devices: Few = 0
    per_device: bool = False
    cores: tuple[int, ...] | None = None
    numbered: bool = False  # files are called by the job's number even if there is only one
    machines: Few = 1


class Benchmark(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to measure."""

    name: str
    workload: Workload
    source: str  # what it was read from: "command line", "tasks.cfg [resnet]"…
    kind: str = ""  # the name of its kind, which plans it and reads its events; empty: by its workload
    metrics: tuple[MetricSpec, ...] = ()
    placement: Placement = Placement()
    env: dict[str, str | None] = {}  # changes to the caller's environment; None removes
    timeout_s: float | None = None
    stop: StopRule | None = None
    warmup: Warmup = Warmup()
    loop: str | None = None  # the loop that counts; None: the first named "train", else the first
    labels: dict[str, str] = {}
    tags: tuple[str, ...] = ()
    parameters: dict[str, str] = {}
    enabled: bool = True
    result_prefix: str | None = None  # the driver's "[framework.]task"
    result_suffix: str | None = None
    environment: Environment | None = None  # to be installed first
    folder: BenchmarkFolder | None = None  # of a suite: the workload's words may hold placeholders
    weight: float = 1.0  # in a suite's score
    requires: tuple[str, ...] = ()  # conditions on the system, such as "gpu['count'] > 1"
    validation: dict[str, Any] = {}  # settings of validation layers
    withheld: str | None = None  # why it is listed and not measured
    fault: str | None = None  # what is wrong with its description: it fails without being started
    hooks: Hooks = Hooks()
    ignore_failure: bool = False  # an exit code other than 0 is a result, too
    notes: tuple[str, ...] = ()  # what a reader should know of how it was read, one sentence each

    @property
    def written_words(self) -> list[str]:
        """Everything that becomes a word of some command line, as it is written."""
        work = self.workload
        words = [*(work.argv if isinstance(work, Command) else work.args)]
        if self.folder is not None:
            words += self.folder.written_words
        for hook in (self.hooks.setup, self.hooks.prepare, self.hooks.cleanup):
            words += () if hook is None else hook.argv
        if self.environment is not None:
            words += [*self.environment.pip_args, *self.environment.constraints]
        return words

    @property
    def entry(self) -> dict[str, object]:
        """The description it was read from, with its own keys; empty where there is none."""
        return {} if self.folder is None else dict(self.folder.config)

    def __post_init__(self) -> None:
        if not self.kind:  # of a run folder or a store written before benchmarks named their kind
            kind = "suite" if self.folder is not None else self.workload.usual_kind
            msgspec.structs.force_setattr(self, "kind", kind)
