"""LiteRT, which was TensorFlow Lite: runs `.tflite` files on the CPU, by XNNPACK as far as it takes the operators."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, Callable, List, Mapping, Sequence

from benchmodels.runtimes.base import FP32, Captured, OpTime, RuntimeOptions, Session, StepTimer, Unsupported
from benchmodels.runtimes.families import ArtifactRuntime
from benchmodels.runtimes.parts.artifact import BuiltModel, as_type, by_name, in_order, write_artifact
from benchmodels.runtimes.parts.problems import explaining
from benchmodels.runtimes.parts.sessions import ArtifactSession, closed, only_the_whole
from benchmodels.types import Arrays, ModelInputs, Prepared, Value


class Litert(ArtifactRuntime):
    """A file runs as it is: in its own precision, with the weights it was quantised to."""

    name = "litert"
    aliases = ("tflite",)
    accepts = (".tflite",)
    precisions = (FP32,)
    packages = ("ai-edge-litert",)
    modules = ("ai_edge_litert",)
    install = "'benchwright[litert]'"
    cpu_only = True

    def build(self, captured: Captured, folder: str, options: RuntimeOptions, steps: StepTimer) -> None:
        raise Unsupported("export", "litert runs .tflite files; models of torch are not converted to them")

    def build_file(
        self, path: str, folder: str, options: RuntimeOptions, steps: StepTimer, shapes: Mapping[str, Sequence[int]]
    ) -> None:
        """There is nothing to build: the file of the user is loaded."""
        write_artifact(folder, BuiltModel(os.path.abspath(path)))

    def open(self, artifact: BuiltModel, options: RuntimeOptions) -> Session:
        return LitertSession(artifact, options)


def interpreter(path: str, threads: int, **more: Any) -> Any:
    """A new one, not yet allocated."""
    module = import_module("ai_edge_litert.interpreter")
    return module.Interpreter(path, num_threads=threads, **more)


def set_inputs(engine: Any, arrays: Sequence[Any]) -> None:
    """In the order of the model's inputs; it is allocated again if their shapes are others than before."""
    ports = engine.get_input_details()
    if any(tuple(port["shape"]) != array.shape for port, array in zip(ports, arrays)):
        for port, array in zip(ports, arrays):
            engine.resize_tensor_input(port["index"], array.shape)
        engine.allocate_tensors()
    for port, array in zip(engine.get_input_details(), arrays):
        engine.set_tensor(port["index"], array)


def read_outputs(engine: Any) -> List[Any]:
    """Copies, in the order of the model's outputs."""
    return [engine.get_tensor(port["index"]) for port in engine.get_output_details()]


class LitertSession(ArtifactSession):
    """One interpreter; every stream has its own."""

    def __init__(self, artifact: BuiltModel, options: RuntimeOptions) -> None:
        super().__init__(artifact, options)
        self._engine = interpreter(artifact.model, options.threads)
        self._engine.allocate_tensors()
        self._ports = [(str(p["name"]), str(_numpy().dtype(p["dtype"]))) for p in self._engine.get_input_details()]
        self._output_names = [str(port["name"]) for port in self._engine.get_output_details()]
        self.run: Callable[[Any], Any] = caller(self._engine)
        self.provider = "XNNPACK"
        self.details = {"threads": options.threads, "wait_policy": "xnnpack"}

    def prepare(self, inputs: ModelInputs) -> Any:
        arrays = in_order(inputs, [name for name, _ in self._ports], self._artifact)
        return [as_type(array, kind) for array, (_, kind) in zip(arrays, self._ports)]

    def outputs(self, result: Value) -> Arrays:
        return by_name(read_outputs(result), self._output_names, self._artifact)

    def new_stream(self) -> Session:
        return LitertSession(self._artifact, self._options)

    def profile(self, prepared: Prepared, calls: int) -> List[OpTime]:
        return only_the_whole(lambda: self.run(prepared), calls)

    def close(self) -> None:
        self._engine = None
        self.run = closed


def caller(engine: Any) -> Callable[[Any], Any]:
    """Calls of `engine`; inputs are copied to it only if they are not those of the last call."""
    bound: Any = None

    def run(prepared: Prepared) -> Any:
        nonlocal bound
        if prepared is not bound:
            with explaining("run"):
                set_inputs(engine, prepared)
            bound = prepared
        engine.invoke()
        return engine

    return run


def _numpy() -> Any:
    return import_module("numpy")
