"""AOTInductor: torch's compiler ahead of time, into a package that is loaded without Python code of the model."""

from __future__ import annotations

import os
from importlib import import_module
from statistics import median
from time import perf_counter
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from benchmodels.runtimes import torch_modules
from benchmodels.runtimes.artifact import Artifact, ArtifactInput, by_name, read_artifact, write_artifact
from benchmodels.runtimes.base import (
    ARTIFACT,
    BF16,
    FP16,
    FP32,
    ArtifactFolder,
    Captured,
    Inputs,
    OpTime,
    Options,
    Session,
    Steps,
    Unsupported,
    module_versions,
)
from benchmodels.runtimes.exporting import exporting, flat_model
from benchmodels.runtimes.host import cpu_kind, gpu_models
from benchmodels.runtimes.inductor_cache import remove_damaged
from benchmodels.runtimes.problems import explaining
from benchmodels.runtimes.torch_compile import lacking_compiler
from benchmodels.runtimes.torch_session import TorchSession, session_on
from benchmodels.tensors import to_arrays

PACKAGE = "model.pt2"


class AotInductor:
    """Measured in a process that has torch, but not the model's own code."""

    name = "aot-inductor"
    kind = ARTIFACT
    accepts = (".pt2",)
    precisions = (FP32, BF16, FP16)

    def unavailable(self, options: Options) -> Optional[str]:
        return torch_modules.unavailable(options) or lacking_compiler(options)

    def version(self) -> str:
        return self.versions().get("torch", "unknown")

    def versions(self) -> Dict[str, str]:
        return module_versions(["torch", "triton"])

    def depends_on(self, options: Options) -> Dict[str, Any]:
        """Its code is for one kind of processor, and calls so many threads as it was compiled for."""
        return {
            "threads": options.threads,
            "cpu": cpu_kind(),
            "gpus": gpu_models() if options.device_type == "cuda" else [],
        }

    def build(self, captured: Captured, folder: str, options: Options, steps: Steps) -> None:
        torch: Any = import_module("torch")
        inductor: Any = import_module("torch._inductor")
        if options.precision not in self.precisions:
            raise Unsupported("export", f"{self.name} does not do {options.precision}")
        remove_damaged()
        with steps.step("export"), explaining("export"), exporting():
            flat = flat_model(captured, options)
            program = torch.export.export(flat.module, flat.tensors, strict=False)
        with steps.step("compile"), explaining("compile"), exporting():
            path = os.path.join(folder, PACKAGE)
            inductor.aoti_compile_and_package(
                program, package_path=path, inductor_configs={"cpp.threads": options.threads}
            )
        inputs = [
            ArtifactInput(name, str(index), str(tensor.dtype).partition(".")[2])
            for index, (name, tensor) in enumerate(zip(flat.names, flat.tensors))
        ]
        write_artifact(folder, Artifact(PACKAGE, flat.precision, inputs, flat.outputs, options.threads))

    def build_file(
        self, path: str, folder: str, options: Options, steps: Steps, shapes: Mapping[str, Sequence[int]]
    ) -> None:
        raise Unsupported("load", f"{self.name} builds a .pt2 file from the module in it, not from the file")

    def load(self, what: Union[Captured, ArtifactFolder], options: Options) -> Session:
        if isinstance(what, Captured):
            raise TypeError(f"{self.name} loads what was built")
        artifact = read_artifact(what)
        if options.device_type == "cpu" and artifact.threads not in (None, options.threads):
            text = f"it was compiled for {artifact.threads} threads, not {options.threads}: build it again"
            raise Unsupported("load", text, kind="changed")
        details = torch_modules.set_threads(options)
        details.update(torch_modules.device_details(options))
        packages: Any = import_module("torch._inductor.package")
        index = options.device_index if options.device_type != "cpu" else -1
        with explaining("load"):
            package = packages.load_package(artifact.model, num_runners=max(1, options.streams), device_index=index)
        inner = session_on(options)(package, options, artifact.precision, details)
        inner.threads_are_fixed = True
        session: Session = PackageSession(inner, artifact)
        return session


class PackageSession:
    """Takes arrays by name, and gives outputs the names of the reference."""

    first_run_builds = False
    consumes_inputs = False

    def __init__(self, inner: TorchSession, artifact: Artifact) -> None:
        self._inner = inner
        self._artifact = artifact
        self.provider = f"inductor {inner.provider.partition(' ')[2]}"
        self.precision, self.details = inner.precision, inner.details
        self.run: Callable[[Any], Any] = inner.run
        self.close: Callable[[], None] = inner.close

    def prepare(self, inputs: Any) -> Inputs:
        return self._inner.prepare(self._as_call(inputs))

    def outputs(self, result: Any) -> Dict[str, Any]:
        arrays = to_arrays(result)
        return by_name(list(arrays.values()), list(arrays), self._artifact)

    def inputs_changed(self, prepared: Any, inputs: Any) -> bool:
        return self._inner.inputs_changed(prepared, self._as_call(inputs))

    def profile(self, prepared: Any, calls: int) -> List[OpTime]:
        """Fused kernels are not marked in a package; what they take is the rest of a call."""
        return with_rest(self._inner.profile(prepared, calls), lambda: self.run(prepared), calls)

    def new_stream(self) -> Session:
        made = PackageSession(self._inner, self._artifact)
        made.run = self._inner.new_stream().run
        made.close = _nothing  # what they share is closed by the first
        return made

    def _as_call(self, arrays: Mapping[str, Any]) -> Inputs:
        torch: Any = import_module("torch")
        missing = [each.name for each in self._artifact.inputs if each.name not in arrays]
        if missing:
            raise Unsupported("first_run", f"there is no array for {', '.join(missing)}", kind="error")
        made = [torch.tensor(arrays[each.name]).to(getattr(torch, each.dtype)) for each in self._artifact.inputs]
        return Inputs(tuple(made), {})


def _nothing() -> None:
    pass


def with_rest(times: List[OpTime], call: Callable[[], Any], calls: int) -> List[OpTime]:
    """And one more row for what no operator accounts for."""
    whole = []
    for _ in range(calls):
        began = perf_counter()
        call()
        whole.append(perf_counter() - began)
    rest = median(whole) - sum(each.seconds_per_call for each in times)
    rows = [*times, OpTime("fused kernels and the runtime", "", rest, 1.0)] if rest > 0 else times
    return sorted(rows, key=lambda row: -row.seconds_per_call)
