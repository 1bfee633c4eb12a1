"""The contract of a runtime: how it builds, loads, calls and profiles a model.

A runtime of kind "module" gets the model itself, in the process that created it. One of kind "artifact" builds the model
once into a folder, in one process, and another that knows only this folder measures it.

`docs/extend/runtime.md` shows how to add one.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from importlib.util import find_spec
from typing import (
    Any,
    ContextManager,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Protocol,
    Sequence,
    Tuple,
    Union,
    runtime_checkable,
)

from benchmodels.types import Arrays, Details, ModelInputs, Module, Prepared, Value

MODULE, ARTIFACT = "module", "artifact"
FP32, BF16, FP16, INT8_DYNAMIC = "fp32", "bf16", "fp16", "int8-dynamic"
INT8_WEIGHTS, INT4_WEIGHTS, FP8_WEIGHTS = "int8-weights", "int4-weights", "fp8-weights"  # only the weights


class Unsupported(Exception):
    """A step that is impossible: a result of the benchmark, not a crash.

    `stage` is one of the `failure` event's; `operator` the unsupported one, such as `aten::foo`. `kind` is "unsupported" if
    the runtime lacks something, "unavailable" if the machine does, "error" for anything else.
    """

    def __init__(self, stage: str, text: str, operator: Optional[str] = None, kind: str = "unsupported") -> None:
        super().__init__(f"{stage}: {text}")
        self.stage = stage
        self.text = text
        self.operator = operator
        self.kind = kind


class RuntimeOptions(NamedTuple):
    """How to run. `device`: "cpu", "cuda", "cuda:1"… `streams` above 1: measure that many concurrent callers, too."""

    device: str = "cpu"
    precision: str = FP32
    threads: int = 1
    streams: int = 1
    onnx_opset: Optional[int] = None  # for an export; None: the exporter chooses
    sequence_file: Optional[str] = None  # the Python file of a build sequence
    tf32: bool = True  # False: of runtimes that are not torch, which `without_tf32` tells

    def of_export(self) -> Details:
        """The options that change an export to ONNX: part of the cache key of builds from it."""
        return {} if self.onnx_opset is None else {"onnx_opset": self.onnx_opset}

    @property
    def device_type(self) -> str:
        return self.device.partition(":")[0]

    @property
    def device_index(self) -> int:
        return int(self.device.partition(":")[2] or 0)


class Autocast(NamedTuple):
    """The region of torch.autocast that a script called a model in. `dtype`: such as bfloat16."""

    dtype: str
    cache: bool = True


class Captured(NamedTuple):
    """A model as the script called it. `names`: those of its positional arguments, as far as they are known."""

    module: Module
    args: Tuple[Value, ...]
    kwargs: Dict[str, Value]
    names: Sequence[str] = ()
    identity: str = ""
    weights: Optional[str] = None
    signature: Optional[object] = None
    autocast: Optional[Autocast] = None  # None: called outside


class ArtifactFolder(NamedTuple):
    """The folder of a build. `file`: a model file of the user, used without a build."""

    folder: str = ""
    file: str = ""


class Inputs(NamedTuple):
    """Inputs of a session of kind "module". `Captured` will do, too."""

    args: Tuple[Value, ...]
    kwargs: Dict[str, Value]


class OpTime(NamedTuple):
    """One operator of a model: its type, its name or "", and per call of the model its own time and number of runs."""

    op: str
    name: str
    seconds_per_call: float
    calls: float


Times = Dict[Tuple[str, str], Tuple[float, float]]  # (operator, name) → seconds and runs over all calls


class StepTimer(Protocol):
    """Times the steps of a build and reports them."""

    def step(self, name: str) -> ContextManager[Any]:
        """Wraps one step."""


class Session(Protocol):
    """A loaded model. One thread loads, calls and closes it."""

    provider: str  # what executes it, such as CPUExecutionProvider
    precision: str  # the actual one: a model may be bfloat16 by itself although "fp32" was requested
    details: Details  # threads, wait policy and whatever else a reader must know
    first_run_builds: bool  # the first call compiles; its time counts as build time

    @property
    def consumes_inputs(self) -> bool:
        """Whether every call needs a new `prepare`; known after the first one."""

    def prepare(self, inputs: ModelInputs) -> Any:
        """Inputs on the device and in the precision: from `Inputs` for a module, arrays by name for an artifact. Not timed."""

    def run(self, prepared: Prepared) -> Any:
        """One call, finished when it returns."""

    def outputs(self, result: Value) -> Arrays:
        """The result as separate arrays, in the order of the reference. Call it before the next `run`."""

    def inputs_changed(self, prepared: Prepared, inputs: ModelInputs) -> bool:
        """Whether the calls so far have modified what `prepare` made of `inputs`."""

    def new_stream(self) -> Session:
        """One more caller, for another thread; it prepares its own inputs."""

    def profile(self, prepared: Prepared, calls: int) -> List[OpTime]:
        """The time of each operator over `calls` calls, from the runtime's own profiler."""

    def close(self) -> None:
        """Releases everything."""


@runtime_checkable
class TimesItself(Protocol):
    """A session whose runtime reads its own clock around a call, without the overhead of calling it from Python."""

    def run(self, prepared: Prepared) -> Any:
        """As a session's."""

    def last_call_s(self) -> float:
        """The duration of the last `run` by that clock."""


@runtime_checkable
class TellsKernels(Protocol):
    """A session that knows more about how it computes once it is called."""

    def kernels(self, prepared: Prepared) -> Details:
        """One more call; what else to report among its details."""


class Runtime(Protocol):
    """One way to run models. Derive from `RuntimeBase`, which has a default for almost everything."""

    name: str
    aliases: Tuple[str, ...]  # other names that --runtime accepts
    kind: str
    accepts: Tuple[str, ...]  # suffixes of the model files it takes
    precisions: Tuple[str, ...]
    packages: Tuple[str, ...]  # distributions that provide it, in order of preference
    through_onnx: bool  # it builds from an ONNX export
    converts_onnx: bool  # its step "convert" changes the precision of the ONNX file
    builds_on_device: bool  # others build on the processor, whatever they run on
    forks: bool  # measured in a process forked from one that has imported torch; others start afresh
    inductor: bool  # compiles with torch's inductor
    applies_autocast: bool  # calls a model under the autocast region of its script
    calls_methods: bool  # measures other methods of a model than its call, such as `generate`

    def unavailable(self, options: RuntimeOptions) -> Optional[str]:
        """Why it cannot run in this interpreter on that device, and what to do; None: it can."""

    def version(self) -> str:
        """The version of the package that runs the model."""

    def versions(self) -> Dict[str, str]:
        """Versions of all packages involved in a build: part of its cache key."""

    def depends_on(self, options: RuntimeOptions) -> Details:
        """Anything else a build is specific to, such as a number of threads: part of its cache key, too."""

    def build(self, captured: Captured, folder: str, options: RuntimeOptions, steps: StepTimer) -> None:
        """Kind "artifact": writes what `load` needs into `folder`; Unsupported says which step failed and why."""

    def build_file(
        self, path: str, folder: str, options: RuntimeOptions, steps: StepTimer, shapes: Mapping[str, Sequence[int]]
    ) -> None:
        """The same for a model file that it accepts. `shapes`: of its inputs, by name."""

    def load(self, what: Union[Captured, ArtifactFolder], options: RuntimeOptions) -> Session:
        """A session; Unsupported says why there is none."""


class RuntimeBase:
    """Defaults for a runtime. A subclass sets the attributes, and defines `load` and, for an artifact, `build`."""

    name = ""
    aliases: Tuple[str, ...] = ()
    kind = ARTIFACT
    accepts: Tuple[str, ...] = ()
    precisions: Tuple[str, ...] = (FP32,)
    packages: Tuple[str, ...] = ()
    build_packages: Tuple[str, ...] = ()  # other distributions that a build depends on
    through_onnx = False
    converts_onnx = False
    builds_on_device = False
    forks = False
    inductor = False
    applies_autocast = False
    calls_methods = False
    modules: Tuple[str, ...] = ()  # what must be importable
    install = ""  # what pip has to install for that
    cpu_only = False

    def unavailable(self, options: RuntimeOptions) -> Optional[str]:
        if self.cpu_only and options.device_type != "cpu":
            return f"{self.name} runs on the CPU only, not on {options.device}; use --device cpu"
        missing = [name for name in self.modules if not is_importable(name)]
        if missing:
            return f"{' and '.join(missing)} not installed: pip install {self.install or ' '.join(self.packages)}"
        return None

    def version(self) -> str:
        return next(iter(module_versions(self.packages).values()), "unknown")

    def versions(self) -> Dict[str, str]:
        return module_versions([*self.packages, *self.build_packages])

    def depends_on(self, options: RuntimeOptions) -> Details:
        return {}

    def build(self, captured: Captured, folder: str, options: RuntimeOptions, steps: StepTimer) -> None:
        raise Unsupported("load", f"{self.name} runs the module itself and builds nothing")

    def build_file(
        self, path: str, folder: str, options: RuntimeOptions, steps: StepTimer, shapes: Mapping[str, Sequence[int]]
    ) -> None:
        raise Unsupported("load", f"{self.name} does not build from model files")

    def require_precision(self, options: RuntimeOptions, stage: str = "export") -> None:
        """Unsupported if it has no such precision."""
        if options.precision not in self.precisions:
            raise Unsupported(stage, f"{self.name} does not support {options.precision}")


class CollectedSteps:
    """StepTimer that are only timed."""

    def __init__(self) -> None:
        self.seconds: Dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began


def is_importable(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ImportError:  # not even its parent package
        return False


def module_versions(names: Sequence[str]) -> Dict[str, str]:
    """Versions of the installed ones among these packages, without importing any."""
    from importlib import metadata  # here: costs more than all of ours, in the process of the script

    versions: Dict[str, str] = {}
    for name in names:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def slowest_first(times: Times, calls: int) -> List[OpTime]:
    rows = [OpTime(op, name, seconds / calls, count / calls) for (op, name), (seconds, count) in times.items()]
    return sorted(rows, key=lambda row: -row.seconds_per_call)
