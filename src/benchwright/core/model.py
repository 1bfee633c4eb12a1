"""Models: a script that has some, what was found in it, and a model as a workload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import msgspec

from benchwright.core.status import Reason

DEFAULT_RUNTIME = "torch-eager"
BUILD_RUNTIME = "onnxruntime"  # the default where models are only built
PRECISIONS = ("fp32", "bf16", "fp16", "int8-dynamic", "int8-weights", "int4-weights", "fp8-weights")
INFERENCE = "inference"
TRAINING = "training"
NEVER_CALLED = "never_called"
ZOO_SCALES = ("tiny", "small", "full")
BUILT_WITH = ("onnx_opset", "sequence_file")  # fields of a Model: how it is built, where a user can say it


class PythonScript(msgspec.Struct, frozen=True, kw_only=True):
    """The common part of workloads that are scripts; `python` is the interpreter, empty until one is chosen."""

    usual_kind: ClassVar[str] = "script"
    shell: ClassVar[bool] = False
    variant: ClassVar[tuple[str, ...]] = ()
    finds_models: ClassVar[bool] = False

    path: str
    args: tuple[str, ...]
    cwd: str
    python: str

    @property
    def script(self) -> str | None:
        return self.path

    @property
    def words(self) -> tuple[str, ...]:
        return (*filter(None, (self.python, self.path)), *self.args)

    def with_arguments(self, words: tuple[str, ...]) -> Self:
        return msgspec.structs.replace(self, args=(*self.args, *words))

    def with_program(self, path: str) -> Self | None:
        """With another interpreter; None where its environment has one."""
        return msgspec.structs.replace(self, python=path) if self.python else None


class ModelScript(PythonScript, frozen=True, kw_only=True, tag="model_script"):
    """A script that is run once to find its models, which are then measured."""

    finds_models: ClassVar[bool] = True

    select: tuple[str, ...] = ()  # class names or prefixes of identities; empty: all its models
    failure: tuple[Reason, str] | None = None  # how its search failed before any model was found


class FoundInput(msgspec.Struct, frozen=True, kw_only=True):
    """One input of a call: a tensor's shape and dtype, or a simple value as text."""

    name: str
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    value: str | None = None

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.name}={self.value}"
        return f"{self.name} {'×'.join(map(str, self.shape)) or 'scalar'} {self.dtype}"


class FoundModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that a script built, with the inputs of one kind of call. Its keys are those of the `model` event."""

    identity: str
    class_: str = msgspec.field(name="class")
    qualified: str = ""
    weights: str | None = None
    content: str | None = None  # what else a build depends on
    parameters: int = 0
    parameter_bytes: int = 0
    trainable: int = 0
    dtype: str | None = None
    device: str | None = None  # where the script calls it
    other_devices: tuple[str, ...] = ()  # that hold parts of it
    in_training: bool = False  # called in training mode
    mode_dependent: tuple[str, ...] = ()  # torch layers that compute differently in that mode
    place: dict[str, Any] | None = None  # file and line of the call
    made_at: dict[str, Any] | None = None
    inputs: tuple[FoundInput, ...] = ()
    items: int | None = None  # in one call, if known
    items_from: str | None = None  # how that is known
    # Dimensions of inputs, by name and position, that are all another call differs in.
    varying: tuple[tuple[tuple[str, int], ...], ...] = ()
    method: str = ""  # "generate": the whole of that method's loop, not one call of the model
    calls: int = 0
    training_calls: int = 0
    mode: str = INFERENCE
    reason: str | None = None  # why it is not measured
    wrappers: tuple[str, ...] = ()
    depth: int = 0
    parent: str | None = None
    path: str = ""  # of a sub-module, inside its model
    main_process: bool = True
    other_shapes: int = 0
    shape_group: str | None = None
    flops: float | None = None
    bytes: float | None = None
    flops_note: str | None = None

    @property
    def measurable(self) -> bool:
        return self.reason is None and self.mode == INFERENCE

    @property
    def why_not_measured(self) -> str:
        """The reason, and what to do."""
        if self.training_calls:
            return f"{self.reason or f'it is in {self.mode}'}; measure its steps with --as training"
        if self.mode == NEVER_CALLED:
            return f"{self.reason or 'it is never called'}; call it in the script, or time all of it with --as command"
        return self.reason or f"it is in {self.mode}"


class ScriptDiscovery(msgspec.Struct, frozen=True, kw_only=True):
    """Models found by one run of a script. `trouble`: how it failed, if it did; models found until then are kept."""

    script: str
    models: tuple[FoundModel, ...]
    ended: bool = True  # its last event came
    exit_code: int | None = 0
    trouble: str | None = None
    notes: tuple[str, ...] = ()
    log: tuple[str, ...] = ()  # the last lines it printed, if it failed
    labels: dict[str, str] = {}
    source_note: str | None = None  # the script's docstring
    parameters: dict[str, Any] = {}  # standard parameters that the script asked for, with the values it got
    optimizer_steps: int = 0
    reason: Reason | None = None  # how its process ended, if not well
    frameworks: tuple[str, ...] = ()  # other than torch, that it imported
    modules: tuple[str, ...] = ()  # files of the user's own modules that it imported
    searched: str | None = None  # when, if an earlier run did


class Model(msgspec.Struct, frozen=True, kw_only=True, tag="model"):
    """A model of a script, of a model file, or of a zoo, on one runtime."""

    usual_kind: ClassVar[str] = "model"
    shell: ClassVar[bool] = False
    finds_models: ClassVar[bool] = False

    runtime: str
    device: str = "cpu"
    precision: str = "fp32"
    python: str
    cwd: str
    script: str | None = None
    args: tuple[str, ...] = ()
    file: str | None = None
    zoo: str | None = None  # such as timm:resnet18
    scale: str = ZOO_SCALES[0]  # of a zoo's model
    zoo_parameters: dict[str, str] = {}  # such as batch_size
    identity: str
    weights: str | None = None
    content: str | None = None
    weights_in_identity: bool = False
    class_: str = msgspec.field(name="class", default="")
    parameters: int = 0
    place: str = ""  # such as bert.py:21
    inputs: tuple[FoundInput, ...] = ()
    items: int | None = None
    items_from: str | None = None
    varying: tuple[tuple[tuple[str, int], ...], ...] = ()
    trust: bool = False
    set_to_eval: bool = False  # the script calls it in training mode
    threads: int | None = None
    streams: int = 1
    max_depth: int = 0
    profile: bool = False
    shapes: dict[str, tuple[int, ...]] = {}
    types: dict[str, str] = {}  # of inputs of a model file, as its specification says
    input_files: dict[str, str] = {}  # input → the file that holds it
    goldens: dict[str, str] = {}  # output → the file with what it should be
    tolerance: dict[str, float] = {}  # error → the worst that passes
    rebuild: str = "if_needed"
    onnx_opset: int | None = None
    sequence_file: str | None = None
    sequence_digest: str | None = None
    stops_after: str = ""
    build_timeout: float = 600.0  # of each step, in seconds
    builds: str = ""  # the folder of cached builds
    source_note: str | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The command of the script that builds it; of a model file or a zoo's model, its name."""
        program = (self.python, self.script) if self.script is not None else (self.file or self.zoo or "",)
        return (*filter(None, program), *self.args)

    def with_arguments(self, words: tuple[str, ...]) -> Model | None:
        """With more arguments for its script; None for a model without one."""
        return None if self.script is None else msgspec.structs.replace(self, args=(*self.args, *words))

    def with_program(self, path: str) -> Model:
        """With another interpreter."""
        return msgspec.structs.replace(self, python=path)

    @property
    def files(self) -> tuple[str, ...]:
        """The user's files that it comes from."""
        return tuple(filter(None, (self.script, self.file, self.sequence_file)))

    @property
    def variant(self) -> tuple[str, ...]:
        """Which model it is, and what it runs on."""
        way = (*self.build_variant, *filter(None, (self.sequence_digest,)))
        return (self.identity, self.runtime, self.device, self.precision, f"threads={self.threads or 'all'}", *way)

    @property
    def build_variant(self) -> tuple[str, ...]:
        """How it is built, where that is not the usual way."""
        return build_variant_of({name: getattr(self, name) for name in BUILT_WITH})

    def built_for(self, *, through_onnx: bool, from_module: bool) -> Model:
        """Without what does not concern such a runtime: only an export has an operator set, only a build a sequence."""
        model = self if through_onnx else msgspec.structs.replace(self, onnx_opset=None)
        return model if not from_module else msgspec.structs.replace(model, sequence_file=None, sequence_digest=None)

    def check_timeout_s(self, launch_s: float | None) -> float | None:
        """The limit for checking its outputs, by that of the launch."""
        return None if launch_s is None else min(launch_s, self.build_timeout)


def build_variant_of(built_with: Mapping[str, object]) -> tuple[str, ...]:
    """`opset17`, `int8.py`: the values of `BUILT_WITH`, as far as they are known and not the usual ones."""
    opset, path = (built_with.get(name) for name in BUILT_WITH)
    return (*((f"opset{opset}",) if opset else ()), *((str(path).rpartition("/")[2],) if path else ()))
