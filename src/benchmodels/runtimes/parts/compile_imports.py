"""Imports what the first call of torch.compile imports, for processes that are forked later: that takes longer than to
compile a small model. Neither a GPU is touched nor one of inductor's workers started."""

from __future__ import annotations

import importlib
import os
from contextlib import contextmanager, suppress
from typing import Iterator

import torch

from benchmodels.runtimes.base import is_importable

NAMES = (
    *("torch._dynamo", "torch._dynamo.backends.inductor", "torch._dynamo.backends.cudagraphs"),
    *("torch._dynamo.repro.after_dynamo", "torch._inductor.compile_fx", "torch._inductor.async_compile"),
    *(
        "torch._inductor.bounds",
        "torch._inductor.choices",
        "torch._inductor.hooks",
        "torch._inductor.compiler_bisector",
    ),
    *("torch._inductor.codegen.cpp_wrapper_gpu", "torch._inductor.codegen.cuda_combined_scheduling"),
    *("torch._inductor.codegen.cuda.device_op_overrides", "torch._inductor.codegen.cpu_device_op_overrides"),
    *("torch._inductor.codegen.halide", "torch._inductor.codegen.pallas", "torch._inductor.codegen.wrapper_fxir"),
    *("torch._inductor.cudagraph_trees", "torch._inductor.kernel_template_choice"),
    *("torch._inductor.runtime.triton_heuristics", "torch._inductor.runtime.static_triton_launcher"),
    *("torch._inductor.fx_passes.fuse_attention", "torch._inductor.fx_passes.pad_mm"),
    *("torch._inductor.fx_passes.mkldnn_fusion", "torch._inductor.fx_passes.quantization"),
    *("torch._inductor.fx_passes.efficient_conv_bn_eval", "torch._inductor.fx_passes.freezing_patterns"),
    *("torch._export.passes._node_metadata_hook", "torch.export._trace", "torch.fx.experimental.validator"),
    *("torch.distributed.tensor.experimental", "sympy.combinatorics", "sympy.physics.units", "sympy.tensor.tensor"),
    *("triton.compiler.compiler", "triton.backends.nvidia.compiler", "triton.backends.nvidia.driver"),
)
# Not torch.utils.cpp_extension: a build of torch with CUDA asks the driver for devices when that is imported.
_POOL = "TORCH_WARM_POOL"  # older versions of torch start inductor's workers when they are imported
_GPUS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")  # the last one: Windows' GPU in its Linux
# Digests of the libraries' own files, which are part of the keys of compiled code. Each is computed once in a process.
_DIGESTS = (
    ("torch._inductor.codecache", "torch_key", "torch"),
    ("torch._inductor.runtime.triton_compat", "triton_key", "triton"),
)


def import_all() -> None:
    """Leaves out what the installed versions lack."""
    pool = os.environ.get(_POOL)
    os.environ[_POOL] = "0"
    try:
        with _driver_left_alone():
            for name in NAMES:
                with suppress(Exception):  # of a version that is not there, or broken: who needs it will say so
                    importlib.import_module(name)
        for module, digest, library in _DIGESTS:
            if is_importable(library):
                with suppress(Exception):  # torch's own functions, not in every version
                    getattr(importlib.import_module(module), digest)()
    finally:
        if pool is None:
            del os.environ[_POOL]
        else:
            os.environ[_POOL] = pool


@contextmanager
def _driver_left_alone() -> Iterator[None]:
    """torch 2.11's inductor asks whether there is a GPU when it is imported. The device's file tells, without the driver."""
    ask, is_importing = torch.cuda.is_available, True

    def is_available() -> bool:
        """Also for whoever keeps it."""
        return any(map(os.path.exists, _GPUS)) if is_importing else ask()

    torch.cuda.is_available = is_available
    try:
        yield
    finally:
        torch.cuda.is_available, is_importing = ask, False


import_all()
