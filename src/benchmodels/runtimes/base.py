"""The contract of a runtime: how a model is built for it, loaded, called, asked what it returned, and profiled.

A runtime of kind "module" is given the model itself, in the process that made it. One of kind "artifact" is built once
into a folder, in a process of its own, and measured in another that knows nothing but that folder.
"""

from __future__ import annotations

from typing import (
    Any,
    ContextManager,
    Dict,
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

MODULE, ARTIFACT = "module", "artifact"
FP32, BF16, FP16, INT8_DYNAMIC = "fp32", "bf16", "fp16", "int8-dynamic"


class Unsupported(Exception):
    """A step that cannot be done: a result of the benchmark, not a crash.

    `stage` is one of the `failure` event's; `operator` the one that is not supported, such as `aten::foo`. `kind` is
    "unsupported" where the runtime lacks something, "unavailable" where the machine does, "error" for anything else.
    """

    def __init__(self, stage: str, text: str, operator: Optional[str] = None, kind: str = "unsupported") -> None:
        super().__init__(f"{stage}: {text}")
        self.stage = stage
        self.text = text
        self.operator = operator
        self.kind = kind


class Options(NamedTuple):
    """How it is to run. `device`: "cpu", "cuda", "cuda:1"… `streams` more than 1: so many callers at once, too."""

    device: str = "cpu"
    precision: str = FP32
    threads: int = 1
    streams: int = 1

    @property
    def device_type(self) -> str:
        return self.device.partition(":")[0]

    @property
    def device_index(self) -> int:
        return int(self.device.partition(":")[2] or 0)


class Captured(NamedTuple):
    """A model as the script called it. `names`: those of its positional arguments, as far as they are known."""

    module: Any
    args: Tuple[Any, ...]
    kwargs: Dict[str, Any]
    names: Sequence[str] = ()
    identity: str = ""
    weights: Optional[str] = None
    signature: Any = None


class ArtifactFolder(NamedTuple):
    """What a build left behind. `file`: a model file of the user, in place of a build."""

    folder: str = ""
    file: str = ""


class Inputs(NamedTuple):
    """What a session of kind "module" is given. `Captured` will do, too."""

    args: Tuple[Any, ...]
    kwargs: Dict[str, Any]


class OpTime(NamedTuple):
    """One operator of a model: its kind, its name or "", its own time in one call of the model, and how often it ran then."""

    op: str
    name: str
    seconds_per_call: float
    calls: float


class Steps(Protocol):
    """Times the steps of a build, and tells about them."""

    def step(self, name: str) -> ContextManager[Any]:
        """Held around one step."""


class Session(Protocol):
    """A model that is ready to be called. Loaded, called and closed in one thread."""

    provider: str  # what runs it, such as CPUExecutionProvider
    precision: str  # in which it really computes: "fp32" may have been asked of a model that is bfloat16 by itself
    details: Dict[str, Any]  # threads, wait policy and whatever else a reader must know
    first_run_builds: bool  # the first call compiles; its time is a build's

    @property
    def consumes_inputs(self) -> bool:
        """Whether `prepare` has to be called before each call; known once it was called."""

    def prepare(self, inputs: Any) -> Any:
        """Inputs on the device and in the precision: `Inputs` for a module, arrays by name for an artifact. Not timed."""

    def run(self, prepared: Any) -> Any:
        """One call, finished when it returns."""

    def outputs(self, result: Any) -> Dict[str, Any]:
        """The result as arrays of their own, in the order of the reference. To be asked before the next call."""

    def inputs_changed(self, prepared: Any, inputs: Any) -> bool:
        """Whether the calls so far have changed what was prepared from `inputs`."""

    def new_stream(self) -> Session:
        """One more caller, for a thread of its own; it prepares its own inputs."""

    def profile(self, prepared: Any, calls: int) -> List[OpTime]:
        """The time of each operator over `calls` calls, by the runtime's own profiler."""

    def close(self) -> None:
        """Releases what it holds."""


@runtime_checkable
class TimesItself(Protocol):
    """A session whose runtime reads a clock of its own around the work of a call, without what calling it from Python costs."""

    def run(self, prepared: Any) -> Any:
        """As a session's."""

    def last_call_s(self) -> float:
        """What that clock says of the last call of `run`."""


class Runtime(Protocol):
    """One way to run models."""

    name: str
    kind: str
    accepts: Tuple[str, ...]  # endings of the model files it takes
    precisions: Tuple[str, ...]

    def unavailable(self, options: Options) -> Optional[str]:
        """Why it cannot run in this interpreter on that device, and what to do; None: it can."""

    def version(self) -> str:
        """Of the package that runs the model."""

    def versions(self) -> Dict[str, str]:
        """Of every package that has a part in a build: part of its key."""

    def depends_on(self, options: Options) -> Dict[str, Any]:
        """What else a build is only good for, such as a number of threads: part of its key, too."""

    def build(self, captured: Captured, folder: str, options: Options, steps: Steps) -> None:
        """Kind "artifact": writes what `load` needs into `folder`; Unsupported says where it could not go on."""

    def build_file(
        self, path: str, folder: str, options: Options, steps: Steps, shapes: Mapping[str, Sequence[int]]
    ) -> None:
        """The same for a model file that it accepts. `shapes`: those that its inputs will have, by name."""

    def load(self, what: Union[Captured, ArtifactFolder], options: Options) -> Session:
        """A session; Unsupported says why there is none."""


class TimedSteps:
    """Steps that are only collected."""

    def __init__(self) -> None:
        self.seconds: Dict[str, float] = {}

    def step(self, name: str) -> ContextManager[Any]:
        return _Timed(self.seconds, name)


class _Timed:
    def __init__(self, seconds: Dict[str, float], name: str) -> None:
        self._seconds = seconds
        self._name = name
        self._began = 0.0

    def __enter__(self) -> None:
        import time

        self._began = time.perf_counter()

    def __exit__(self, *error: object) -> None:
        import time

        self._seconds[self._name] = self._seconds.get(self._name, 0.0) + time.perf_counter() - self._began


def module_versions(names: Sequence[str]) -> Dict[str, str]:
    """The versions of those packages that are installed, without importing one."""
    from importlib import metadata

    versions: Dict[str, str] = {}
    for name in names:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def slowest_first(times: Mapping[Tuple[str, str], Tuple[float, float]], calls: int) -> List[OpTime]:
    """`times`: (operator, name) → seconds and occurrences over all calls."""
    rows = [OpTime(op, name, seconds / calls, count / calls) for (op, name), (seconds, count) in times.items()]
    return sorted(rows, key=lambda row: -row.seconds_per_call)
