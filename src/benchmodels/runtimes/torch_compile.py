"""torch.compile with its usual backend, for exactly the shapes it is called with."""

from __future__ import annotations

import os
import shutil
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Dict, List, Optional, Tuple, Union

from benchmodels.runtimes import torch_modules
from benchmodels.runtimes.base import (
    BF16,
    FP16,
    FP32,
    INT8_DYNAMIC,
    ArtifactFolder,
    Captured,
    OpTime,
    Options,
    Session,
    Unsupported,
    module_versions,
)
from benchmodels.runtimes.inductor_cache import remove_damaged
from benchmodels.runtimes.problems import explaining
from benchmodels.runtimes.torch_eager import TorchEager, module_of
from benchmodels.runtimes.torch_session import TorchSession, session_on


class TorchCompile(TorchEager):
    """The first call compiles."""

    name = "torch-compile"
    precisions: Tuple[str, ...] = (FP32, BF16, FP16)

    def unavailable(self, options: Options) -> Optional[str]:
        return torch_modules.unavailable(options) or lacking_compiler(options)

    def versions(self) -> Dict[str, str]:
        return module_versions(["torch", "triton"])

    def load(self, what: Union[Captured, ArtifactFolder], options: Options) -> Session:
        if options.precision == INT8_DYNAMIC:
            raise Unsupported("load", "torch.compile does not take modules that are quantised dynamically")
        module = module_of(what)
        details = torch_modules.set_threads(options)
        with explaining("load"):
            fit = torch_modules.fitted(module, options)
        details.update(torch_modules.device_details(options))
        damaged = remove_damaged()
        if damaged:
            details["compile_cache_damaged"] = damaged
        config: Any = import_module("torch._inductor.config")
        config.cpp.threads = options.threads  # in the code, and in the key of torch's own cache
        inner = session_on(options)(compiled(fit.module), options, fit.precision, details)
        inner.threads_are_fixed = True
        session: Session = CompiledSession(inner, fit.module)
        return session


def compiled(module: Any) -> Any:
    """A compiled module that shares nothing with what the script compiled before.

    Its leftovers would count against the limit of recompilations, after which calls are quietly not compiled.
    """
    torch: Any = import_module("torch")
    dynamo: Any = import_module("torch._dynamo")
    dynamo.reset()
    torch_modules.allow_compiling()
    _counters().clear()
    return torch.compile(module, dynamic=False)


def lacking_compiler(options: Options) -> Optional[str]:
    """What inductor needs beyond torch."""
    if not any(shutil.which(name) for name in (os.environ.get("CXX") or "g++", "g++", "clang++")):
        return "torch.compile needs a C++ compiler: install g++, or set CXX"
    if options.device_type == "cuda" and find_spec("triton") is None:
        return "torch.compile needs triton for this device: pip install triton"
    return None


class CompiledSession:
    """A session that knows whether anything was compiled at all: torch falls back to eager without a word."""

    first_run_builds = True

    def __init__(self, inner: TorchSession, module: Any) -> None:
        self._inner = inner
        self._module = module
        self._checked = False
        self.provider = f"inductor {inner.provider.partition(' ')[2]}"
        self.precision, self.details = inner.precision, inner.details
        self.prepare, self.run, self.close = inner.prepare, inner.run, inner.close
        self.inputs_changed, self.new_stream = inner.inputs_changed, inner.new_stream

    @property
    def consumes_inputs(self) -> bool:
        return self._inner.consumes_inputs

    def outputs(self, result: Any) -> Dict[str, Any]:
        if not self._checked:
            self._checked = True
            self._tell_what_was_compiled()
        return self._inner.outputs(result)

    def profile(self, prepared: Any, calls: int) -> List[OpTime]:
        """Compiles it once more, with a mark around each fused kernel."""
        config: Any = import_module("torch._inductor.config")
        with config.patch({"cpp.enable_kernel_profile": True}):
            self._inner._call = compiled(self._module)
            return self._inner.profile(prepared, calls)

    def _tell_what_was_compiled(self) -> None:
        counters = _counters()
        inductor = counters["inductor"]
        graphs = counters["stats"].get("unique_graphs", 0)
        hits, misses = inductor.get("fxgraph_cache_hit", 0), inductor.get("fxgraph_cache_miss", 0)
        self.details["graphs"] = graphs
        self.details["graph_breaks"] = sum(counters["graph_break"].values())
        self.details["compile_cache_hits"] = hits
        self.details["compile_cache_misses"] = misses
        if self._inner.provider.endswith("cpu"):
            self.details["vector_instructions"] = vector_instructions()
        if not graphs:
            raise Unsupported("compile", "torch.compile found nothing to compile, so this would be eager", kind="error")


def vector_instructions() -> str:
    """Those that inductor writes code for; "none": it found none that work here, and its code is slow."""
    try:
        found: Any = import_module("torch._inductor.cpu_vec_isa").pick_vec_isa()
        return str(found) if found else "none"
    except Exception:  # of another version of torch
        return "unknown"


def _counters() -> Any:
    utils: Any = import_module("torch._dynamo.utils")
    return utils.counters
