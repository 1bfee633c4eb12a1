"""Runtimes by name: the built-in ones, and those that other packages offer through the group `benchmodels.runtimes`."""

from __future__ import annotations

import difflib
import importlib
from typing import Any, Dict, List

from benchmodels.runtimes.base import Runtime

GROUP = "benchmodels.runtimes"
# A runtime is a class without arguments.
BUILT_IN = {
    "torch-eager": "benchmodels.runtimes.torch_eager:TorchEager",
    "torch-compile": "benchmodels.runtimes.torch_compile:TorchCompile",
    "onnxruntime": "benchmodels.runtimes.onnxruntime_:OnnxRuntime",
    "onnxruntime-tensorrt": "benchmodels.runtimes.onnxruntime_:OnnxRuntimeTensorRT",
    "openvino": "benchmodels.runtimes.openvino_:OpenVino",
    "aot-inductor": "benchmodels.runtimes.aot_inductor:AotInductor",
    "iree": "benchmodels.runtimes.iree_:Iree",
    "mnn": "benchmodels.runtimes.mnn_:Mnn",
    "ncnn": "benchmodels.runtimes.ncnn_:Ncnn",
    "executorch": "benchmodels.runtimes.executorch_:Executorch",
    "tvm": "benchmodels.runtimes.tvm_:Tvm",
}
# Names that people know from elsewhere.
ALSO_CALLED = {
    "torch": "torch-eager",
    "eager": "torch-eager",
    "torch-compiled": "torch-compile",
    "ort": "onnxruntime",
    "trt": "onnxruntime-tensorrt",
    "aoti": "aot-inductor",
}


class UnknownRuntime(ValueError):
    """No runtime has that name; the text names those there are."""


def known_runtimes() -> List[str]:
    """The names of all runtimes, the built-in ones first."""
    return [*BUILT_IN, *(name for name in sorted(_added()) if name not in BUILT_IN)]


def runtime_named(name: str) -> Runtime:
    """The runtime of that name; nothing heavy is imported yet."""
    wanted = ALSO_CALLED.get(name, name)
    place = BUILT_IN.get(wanted) or _added().get(wanted)
    if place is None:
        raise UnknownRuntime(_unknown(name))
    module, _, attribute = place.partition(":")
    made: Runtime = getattr(importlib.import_module(module), attribute)()
    return made


def _added() -> Dict[str, str]:
    """Name → `module:class` of what is installed beside us."""
    from importlib import metadata

    points: Any = metadata.entry_points()
    if hasattr(points, "select"):
        found = points.select(group=GROUP)
    else:  # Python 3.9
        found = points.get(GROUP, ())
    return {point.name: point.value for point in found}


def _unknown(name: str) -> str:
    known = known_runtimes()
    near = difflib.get_close_matches(name, [*known, *ALSO_CALLED], 1)
    hint = f"; did you mean '{ALSO_CALLED.get(near[0], near[0])}'?" if near else ""
    return (
        f"unknown runtime '{name}'{hint} Known: {', '.join(known)}"
        if hint
        else (f"unknown runtime '{name}'. Known: {', '.join(known)}")
    )
