"""torch.compile with its default backend, for the shapes it is called with."""

from __future__ import annotations

import os
import shutil
import sys
from importlib import import_module
from typing import Any, Callable, List, Optional, Tuple, Union

from benchmodels.runtimes.base import (
    BF16,
    FP8_WEIGHTS,
    FP16,
    FP32,
    INT4_WEIGHTS,
    INT8_WEIGHTS,
    ArtifactFolder,
    Captured,
    OpTime,
    RuntimeOptions,
    Session,
    Unsupported,
    is_importable,
)
from benchmodels.runtimes.parts import torch_modules, weight_only
from benchmodels.runtimes.parts.compiled_code import remove_damaged
from benchmodels.runtimes.parts.problems import explaining
from benchmodels.runtimes.parts.sessions import SharedStream
from benchmodels.runtimes.parts.torch_session import TorchSession, session_on
from benchmodels.runtimes.torch_eager import TorchEager, autocast_of, module_of
from benchmodels.types import Arrays, Module, Prepared, Value


class TorchCompile(TorchEager):
    """The first call compiles."""

    name = "torch-compile"
    aliases: Tuple[str, ...] = ("torch-compiled", "inductor")
    precisions: Tuple[str, ...] = (FP32, BF16, FP16, INT8_WEIGHTS, INT4_WEIGHTS, FP8_WEIGHTS)
    build_packages: Tuple[str, ...] = ("triton",)
    mode: Optional[str] = None  # torch's name for it; None: its default
    backend = "inductor"
    inductor = True
    calls_methods = False  # a loop in Python is not compiled

    def unavailable(self, options: RuntimeOptions) -> Optional[str]:
        return torch_modules.unavailable(options) or weight_only.unavailable(options) or lacking_compiler(options)

    def load(self, what: Union[Captured, ArtifactFolder], options: RuntimeOptions) -> Session:
        self.require_precision(options, "load")
        module = module_of(what)
        details = torch_modules.set_threads(options)
        with explaining("load"):
            fit = torch_modules.with_autocast(torch_modules.fitted(module, options), autocast_of(what), options)
        details.update({**torch_modules.device_details(options), **fit.details})
        damaged = remove_damaged()
        if damaged:
            details["compile_cache_damaged"] = damaged
        config = import_module("torch._inductor.config")
        config.cpp.threads = options.threads  # part of the code, and of the key in torch's own cache
        if self.mode is not None:
            details["compile_mode"] = self.mode

        def compile_it() -> Any:
            call = compiled(fit.module, self.mode, self.backend)
            return torch_modules.under_autocast(call, autocast_of(what), options)

        inner = session_on(options)(compile_it(), options, fit.precision, details)
        inner.threads_are_fixed = True
        return CompiledSession(inner, self.backend, compile_it)


class TorchCompileMaxAutotune(TorchCompile):
    """Tries several kernels for each product, and replays CUDA graphs where there are any: a longer build."""

    name = "torch-compile-max-autotune"
    aliases = ("max-autotune",)
    mode = "max-autotune"


class TorchCompileCudaGraphs(TorchCompile):
    """Replays a CUDA graph instead of launching one kernel after the other."""

    name = "torch-compile-cuda-graphs"
    aliases = ("cuda-graphs", "reduce-overhead")
    mode = "reduce-overhead"

    def unavailable(self, options: RuntimeOptions) -> Optional[str]:
        if options.device_type != "cuda":
            return f"CUDA graphs need a CUDA device, not {options.device}"
        return super().unavailable(options)


class TorchTensorRT(TorchCompile):
    """TensorRT as a backend of torch.compile, for the parts of the model that it takes."""

    name = "torch-tensorrt"
    aliases = ("torch-trt",)
    precisions = (FP32, FP16)
    packages = ("torch-tensorrt",)
    build_packages = ("torch", "tensorrt")
    backend = "torch_tensorrt"
    forks = False  # its memory is to be its own
    inductor = False

    def unavailable(self, options: RuntimeOptions) -> Optional[str]:
        if options.device_type != "cuda":
            return f"TensorRT needs a CUDA device, not {options.device}"
        if not is_importable("torch_tensorrt"):
            return "torch_tensorrt is not installed: pip install torch-tensorrt"
        return torch_modules.unavailable(options)

    def load(self, what: Union[Captured, ArtifactFolder], options: RuntimeOptions) -> Session:
        try:
            import_module("torch_tensorrt")  # makes the backend known to torch
        except Exception as error:  # of many kinds; without TensorRT's libraries a bare Exception
            message = " ".join(str(error).split())
            needs = "it needs TensorRT's libraries: pip install tensorrt"
            raise Unsupported(
                "load", f"torch_tensorrt cannot be imported: {message}; {needs}", kind="unavailable"
            ) from error
        return super().load(what, options)


def compiled(module: Module, mode: Optional[str] = None, backend: str = "inductor") -> Module:
    """A compiled module that shares nothing with what the script compiled before.

    That would count towards the recompilation limit, beyond which torch silently stops compiling.
    """
    torch = import_module("torch")
    dynamo = import_module("torch._dynamo")
    dynamo.reset()
    torch_modules.allow_compiling()
    _counters().clear()
    return torch.compile(module, dynamic=False, mode=mode, backend=backend)


def lacking_compiler(options: RuntimeOptions) -> Optional[str]:
    """The tool that inductor lacks beyond torch, as an error message; None if it has all."""
    named = os.environ.get("CXX")
    if named is not None and shutil.which(named) is None:
        return f"torch.compile needs a C++ compiler, and there is no {named!r}, which CXX names"
    if named is None and shutil.which("clang++" if sys.platform == "darwin" else "g++") is None:
        return "torch.compile needs a C++ compiler: install g++, or set CXX"
    if options.device_type == "cuda" and not is_importable("triton"):
        return "torch.compile needs triton for this device: pip install triton"
    return None


class CompiledSession(SharedStream):
    """Checks that anything was compiled at all: torch silently falls back to eager."""

    first_run_builds = True

    def __init__(self, inner: TorchSession, backend: str, compile_again: Callable[[], Any]) -> None:
        super().__init__(inner)
        self._inner = inner
        self._compile_again = compile_again
        self._checked = False
        self.provider = f"{backend} {inner.provider.partition(' ')[2]}"
        self.outputs, self.profile = self._checked_outputs, self._profile

    def close(self) -> None:
        self._inner.close()

    def _checked_outputs(self, result: Value) -> Arrays:
        if not self._checked:
            self._checked = True
            self._note_what_was_compiled()
        return self._inner.outputs(result)

    def _profile(self, prepared: Prepared, calls: int) -> List[OpTime]:
        """Compiles it again, with a mark around each fused kernel."""
        config = import_module("torch._inductor.config")
        with config.patch({"cpp.enable_kernel_profile": True}):
            self._inner.call = self._compile_again()
            return self._inner.profile(prepared, calls)

    def _note_what_was_compiled(self) -> None:
        counters = _counters()
        inductor = counters["inductor"]
        graphs = counters["stats"].get("unique_graphs", 0)
        hits, misses = inductor.get("fxgraph_cache_hit", 0), inductor.get("fxgraph_cache_miss", 0)
        self.details["graphs"] = graphs
        self.details["graph_breaks"] = sum(counters["graph_break"].values())
        self.details["compile_cache_hits"] = hits
        self.details["compile_cache_misses"] = misses
        if "compile_mode" in self.details and inductor.get("cudagraph_skips"):
            self.details["cudagraph_skips"] = inductor["cudagraph_skips"]
        if self._inner.provider.endswith("cpu"):
            self.details["vector_instructions"] = vector_instructions()
        if not graphs:
            raise Unsupported("compile", "torch.compile compiled nothing: this would measure eager", kind="error")


def vector_instructions() -> str:
    """The vector instructions that inductor generates code for; "none": it found none that work here, and its code is slow."""
    try:
        found = import_module("torch._inductor.cpu_vec_isa").pick_vec_isa()
        return str(found) if found else "none"
    except Exception:  # this function is torch's own, and not in every version
        return "unknown"


def _counters() -> Any:
    utils = import_module("torch._dynamo.utils")
    return utils.counters
