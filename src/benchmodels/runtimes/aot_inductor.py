"""AOTInductor: torch's compiler ahead of time, into a package that runs without the model's Python code."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, Callable, List, Mapping, Optional

from benchmodels.runtimes.base import (
    BF16,
    FP16,
    FP32,
    Captured,
    Inputs,
    OpTime,
    RuntimeOptions,
    Session,
    StepTimer,
    Unsupported,
)
from benchmodels.runtimes.families import ArtifactRuntime
from benchmodels.runtimes.parts import torch_modules
from benchmodels.runtimes.parts.artifact import BuiltModel, by_name, in_order, write_artifact
from benchmodels.runtimes.parts.compiled_code import copies_cxx_library, cpu_kind, gpu_models, remove_damaged
from benchmodels.runtimes.parts.export import exporting, flat_model, numbered_inputs
from benchmodels.runtimes.parts.problems import explaining
from benchmodels.runtimes.parts.sessions import median_call_s
from benchmodels.runtimes.parts.torch_session import TorchSession, session_on
from benchmodels.runtimes.torch_compile import lacking_compiler
from benchmodels.tensors import to_arrays
from benchmodels.types import Array, Arrays, Details, ModelInputs, Prepared, Value

PACKAGE = "model.pt2"


class AotInductor(ArtifactRuntime):
    """Measured in a process that has torch, but not the model's own code."""

    name = "aot-inductor"
    aliases = ("aoti",)
    accepts = (".pt2",)
    precisions = (FP32, BF16, FP16)
    packages = ("torch",)
    build_packages = ("triton",)
    builds_on_device = True
    inductor = True

    def unavailable(self, options: RuntimeOptions) -> Optional[str]:
        return torch_modules.unavailable(options) or lacking_compiler(options)

    def depends_on(self, options: RuntimeOptions) -> Details:
        """Its code is for one kind of processor and a fixed number of threads."""
        return {
            "threads": options.threads,
            "cpu": cpu_kind(),
            "gpus": gpu_models() if options.device_type == "cuda" else [],
        }

    def build(self, captured: Captured, folder: str, options: RuntimeOptions, steps: StepTimer) -> None:
        torch = import_module("torch")
        inductor = import_module("torch._inductor")
        self.require_precision(options)
        require_shared_cxx_library()
        remove_damaged()
        with steps.step("export"), explaining("export"), exporting():
            flat = flat_model(captured, options)
            program = torch.export.export(flat.module, flat.tensors, strict=False)
        with steps.step("compile"), explaining("compile"), exporting():
            path = os.path.join(folder, PACKAGE)
            inductor.aoti_compile_and_package(
                program, package_path=path, inductor_configs={"cpp.threads": options.threads}
            )
        write_artifact(
            folder, BuiltModel(PACKAGE, flat.precision, numbered_inputs(flat), flat.outputs, options.threads)
        )

    def open(self, artifact: BuiltModel, options: RuntimeOptions) -> Session:
        if options.device_type == "cpu" and artifact.threads not in (None, options.threads):
            text = f"compiled for {artifact.threads} threads, not {options.threads}: build it again"
            raise Unsupported("load", text, kind="changed")
        details = torch_modules.set_threads(options)
        details.update(torch_modules.device_details(options))
        packages = import_module("torch._inductor.package")
        index = options.device_index if options.device_type != "cpu" else -1
        package = packages.load_package(artifact.model, num_runners=max(1, options.streams), device_index=index)
        inner = session_on(options)(package, options, artifact.precision, details)
        inner.threads_are_fixed = True
        return PackageSession(inner, artifact)


def require_shared_cxx_library() -> None:
    compiler = import_module("torch._inductor.cpp_builder").get_cpp_compiler()
    if copies_cxx_library(compiler):
        raise Unsupported(
            "compile",
            f"{compiler} links the C++ library into the package, which then crashes beside torch's: set CXX to another "
            "compiler, such as CXX=/usr/bin/g++",
            kind="unavailable",
        )


class PackageSession:
    """Takes arrays by name, and names outputs as the reference does."""

    first_run_builds = False
    consumes_inputs = False

    def __init__(self, inner: TorchSession, artifact: BuiltModel, stream: Optional[Session] = None) -> None:
        self._inner = inner
        self._artifact = artifact
        self.provider = f"inductor {inner.provider.partition(' ')[2]}"
        self.precision, self.details = inner.precision, inner.details
        self.run: Callable[[Any], Any] = (stream or inner).run
        self.close: Callable[[], None] = (stream or inner).close

    def prepare(self, inputs: ModelInputs) -> Inputs:
        return self._inner.prepare(self._as_call(inputs))

    def outputs(self, result: Value) -> Arrays:
        arrays = to_arrays(result)
        return by_name(list(arrays.values()), list(arrays), self._artifact)

    def inputs_changed(self, prepared: Prepared, inputs: ModelInputs) -> bool:
        return self._inner.inputs_changed(prepared, self._as_call(inputs))

    def profile(self, prepared: Prepared, calls: int) -> List[OpTime]:
        """A package does not mark its fused kernels; their time is the rest of a call."""
        return with_rest(self._inner.profile(prepared, calls), lambda: self.run(prepared), calls)

    def new_stream(self) -> Session:
        return PackageSession(self._inner, self._artifact, self._inner.new_stream())

    def _as_call(self, arrays: Mapping[str, Array]) -> Inputs:
        torch = import_module("torch")
        ports = self._artifact.inputs
        given = in_order(arrays, [each.port for each in ports], self._artifact)
        return Inputs(tuple(torch.tensor(x).to(getattr(torch, each.dtype)) for x, each in zip(given, ports)), {})


def with_rest(times: List[OpTime], call: Callable[[], object], calls: int) -> List[OpTime]:
    """With one more row for what no operator accounts for."""
    rest = median_call_s(call, calls) - sum(each.seconds_per_call for each in times)
    rows = [*times, OpTime("fused kernels and the runtime", "", rest, 1.0)] if rest > 0 else times
    return sorted(rows, key=lambda row: -row.seconds_per_call)
