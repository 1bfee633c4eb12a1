"""A Benchmark and its parts: frozen and fully resolved, whatever it was read from."""

from __future__ import annotations

import shlex
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from benchwright.core.metric import MetricSpec
from benchwright.core.model import Model, ModelScript, PythonScript
from benchwright.core.stop_rule import StopRule, Warmup

SIDE, REVISION = "side", "revision"  # labels of the two that are compared in an A/B
UNPINNED = "unpinned"  # the variant that installs requirements.in itself


class Command(msgspec.Struct, frozen=True, kw_only=True, tag="command"):
    """Any program: an argv or, with `shell`, one line for a shell."""

    usual_kind: ClassVar[str] = "command"
    variant: ClassVar[tuple[str, ...]] = ()  # what distinguishes it from another workload with the same words
    script: ClassVar[str | None] = None
    finds_models: ClassVar[bool] = False

    argv: tuple[str, ...]
    cwd: str
    shell: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The command as written; for a shell, its one line."""
        return self.argv

    def with_arguments(self, words: tuple[str, ...]) -> Command:
        """The same with more words at its end, each of which stays one word in a shell's line too."""
        more = (" ".join((*self.argv, *map(shlex.quote, words))),) if self.shell else (*self.argv, *words)
        return msgspec.structs.replace(self, argv=more)

    def with_program(self, path: str) -> Command | None:
        """The same command of another program; None for a shell's line."""
        return None if self.shell else msgspec.structs.replace(self, argv=(path, *self.argv[1:]))


class Hooks(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Commands around the launches of a benchmark: once before the first, before each, and once after the last."""

    setup: Command | None = None
    prepare: Command | None = None
    cleanup: Command | None = None


class Script(PythonScript, frozen=True, kw_only=True, tag="script"):
    """A Python script whose loop is measured. `training`: it is not instrumented; its training steps are recognised."""

    training: bool = False


Workload = Command | Script | ModelScript | Model


Few = Annotated[int, Meta(ge=0, le=1 << 16)]  # processes, devices or machines


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """Where the processes of one launch run.

    `jobs` processes run together on each of `machines`, each pinned to `cores` if given. `per_device`: one process for
    each accelerator instead. A benchmark that `needs_devices` the machine lacks is skipped, with the reason.
    """

    jobs: Few = 1
    needs_devices: Few = 0
    per_device: bool = False
    cores: tuple[int, ...] | None = None
    numbered: bool = False  # file names carry the job's number even if there is only one job
    machines: Few = 1


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """A virtual environment as a suite describes it; benchmarks share the one of the same `name`.

    Requirements are files in `folder`; `benchwright.environments` builds it.
    """

    name: str
    folder: str
    requirements: tuple[str, ...] = ("requirements.in",)
    variant: str | None = None  # selects requirements.<variant>.txt; None: the system's arch
    packages: tuple[str, ...] = ()  # also installed, unless a requirements file names them
    constraints: tuple[str, ...] = ()  # lines for pip
    pip_args: tuple[str, ...] = ()
    python: str | None = None  # a path or a version; None: benchwright's own interpreter
    own_steps: str | None = None  # a file that says itself what else to install
    local_packages: tuple[str, ...] = ()  # folders with the source of further packages


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """A benchmark of a server: the server is started first, and ended when the client that measures it has ended."""

    script: str  # a file of the folder, or a program of the environment
    args: tuple[str, ...] = ()  # may hold placeholders
    ready: str | None = None  # tcp:HOST:PORT or http://…; None: the client does the waiting
    ready_timeout_s: float = 600.0


class Launcher(msgspec.Struct, frozen=True, kw_only=True):
    """Starts one process for each device: torchrun or accelerate."""

    name: str
    processes: int | None = None  # on each machine; None: one for each device, or one
    args: tuple[str, ...] = ()  # for the launcher itself


class Runner(msgspec.Struct, frozen=True, kw_only=True):
    """A program that runs a script and reports what it measures, as a dialect of suites starts it."""

    name: str
    dialect: str
    settings: dict[str, Any] = {}


class BenchmarkFolder(msgspec.Struct, frozen=True, kw_only=True):
    """A suite entry's code. Paths are absolute; file names are relative to `path`.

    `config` is the resolved entry with the keys of the suite file, which dialects show to its scripts.
    """

    path: str
    group: str
    git: str | None = None  # `install` clones this repository into the folder
    branch: str | None = None
    prepare_script: str | None = "prepare.py"
    main_script: str = "main.py"
    runner: Runner | None = None  # the program that runs the script, if Python alone does not
    launcher: Launcher | None = None
    serving: Serving | None = None
    config: dict[str, Any] = {}

    @property
    def written_words(self) -> list[str]:
        """Words of the launcher's, the server's and git's command lines."""
        launcher = self.launcher.args if self.launcher is not None else ()
        server = self.serving.args if self.serving is not None else ()
        return [*launcher, *server, self.git or ""]


class Benchmark(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to measure."""

    name: str
    workload: Workload
    source: str  # where it was read from: "command line", "tasks.cfg [resnet]"…
    kind: str = ""  # its kind, which plans it and reads its events; empty: decided by its workload
    metrics: tuple[MetricSpec, ...] = ()
    placement: Placement = Placement()
    env: dict[str, str | None] = {}  # changes to the caller's environment; None removes
    timeout_s: float | None = None
    stop: StopRule | None = None
    warmup: Warmup = Warmup()
    loop: str | None = None  # the loop to measure; None: the first one named "train", else the first
    labels: dict[str, str] = {}
    tags: tuple[str, ...] = ()
    parameters: dict[str, str] = {}
    enabled: bool = True
    result_prefix: str | None = None  # of the keys in a file of results: "[framework.]task"
    result_suffix: str | None = None
    environment: Environment | None = None  # installed first
    folder: BenchmarkFolder | None = None  # of a suite; the workload's words may then hold placeholders
    weight: float = 1.0  # in a suite's score
    requires: tuple[str, ...] = ()  # conditions on the system, such as "gpu['count'] > 1"
    validation: dict[str, Any] = {}  # settings of validation layers
    withheld: str | None = None  # why it is listed but not measured
    fault: str | None = None  # what is wrong with its description; it then fails without being started
    hooks: Hooks = Hooks()
    ignore_failure: bool = False  # an exit code other than 0 is a result, too
    notes: tuple[str, ...] = ()  # remarks on how it was read, one sentence each
    launches: Annotated[int, Meta(ge=1, le=1 << 20)] = 1  # that its target asks for, if the user does not
    pair: str = ""  # benchmarks with the same one alternate with each other only, and are compared
    data: dict[str, Any] = {}  # of its kind alone, as plain JSON values

    @property
    def written_words(self) -> list[str]:
        """Everything that becomes a word of some command line, as written."""
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
    def is_open(self) -> bool:
        """Whether it is a script whose models are not known yet; they will be measured in its place."""
        work = self.workload
        return isinstance(work, ModelScript) and not (work.failure or self.withheld or self.fault)

    def started_as(self, script: Benchmark) -> Benchmark:
        """With the environment and arguments of the script that it was found in."""
        work, other = self.workload, script.workload
        if isinstance(work, Command) or isinstance(other, Command):
            return self
        return msgspec.structs.replace(self, env=script.env, workload=msgspec.structs.replace(work, args=other.args))

    @property
    def side(self) -> str | None:
        """Of an A/B: control or treatment."""
        return self.labels.get(SIDE) if self.pair else None

    def on_side(self, side: str, revision: str) -> Benchmark:
        """As one of the two that are compared under its name."""
        labels = self.labels | {SIDE: side, REVISION: revision}
        return msgspec.structs.replace(self, name=f"{self.name} {side}", pair=self.name, labels=labels)

    @property
    def entry(self) -> dict[str, object]:
        """The suite entry it was read from, with its own keys; empty if there is none."""
        return {} if self.folder is None else dict(self.folder.config)

    def __post_init__(self) -> None:
        if not self.kind:  # in files written before benchmarks named their kind
            kind = "suite" if self.folder is not None else self.workload.usual_kind
            msgspec.structs.force_setattr(self, "kind", kind)
