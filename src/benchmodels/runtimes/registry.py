"""Runtimes by name: the built-in ones, and runtimes of other packages, from the entry-point group `benchmodels.runtimes`.

`python -m benchmodels.runtimes.registry NAME…` says in JSON which of these names this interpreter knows.
"""

from __future__ import annotations

import difflib
import importlib
import json
import sys
from typing import Any, Dict, List, Optional, Sequence

from benchmodels.runtimes.base import Runtime

GROUP = "benchmodels.runtimes"
# Runtime classes, which take no arguments. Not entry points: benchmodels also runs from a plain copy of its folder, in
# environments where it is not installed.
BUILT_IN = {
    "torch-eager": "benchmodels.runtimes.torch_eager:TorchEager",
    "torch-compile": "benchmodels.runtimes.torch_compile:TorchCompile",
    "torch-compile-max-autotune": "benchmodels.runtimes.torch_compile:TorchCompileMaxAutotune",
    "torch-compile-cuda-graphs": "benchmodels.runtimes.torch_compile:TorchCompileCudaGraphs",
    "torch-tensorrt": "benchmodels.runtimes.torch_compile:TorchTensorRT",
    "onnxruntime": "benchmodels.runtimes.onnxruntime:OnnxRuntime",
    "onnxruntime-tensorrt": "benchmodels.runtimes.onnxruntime:OnnxRuntimeTensorRT",
    "openvino": "benchmodels.runtimes.openvino:OpenVino",
    "aot-inductor": "benchmodels.runtimes.aot_inductor:AotInductor",
    "executorch": "benchmodels.runtimes.executorch:Executorch",
    "litert": "benchmodels.runtimes.litert:Litert",
}
# The runtime of a model file, by its ending, unless `--runtime` names one. A table, because loading all of them is slow.
FOR_FILES = {".onnx": "onnxruntime", ".pt2": "torch-eager", ".xml": "openvino", ".tflite": "litert"}


class UnknownRuntime(ValueError):
    """No runtime has that name; the text lists the known ones."""


def known_runtimes() -> List[str]:
    """The names of all runtimes, the built-in ones first."""
    return list(_places())


def runtime_named(name: str) -> Runtime:
    """The runtime of that name or alias. Imports nothing heavy yet."""
    if name in BUILT_IN:
        return _made(BUILT_IN[name])  # without looking for others, which is expensive in the process of a script
    places = _places()
    if name in places:
        return _made(places[name])
    for place in places.values():
        runtime = _offered(place)
        if runtime is not None and name in runtime.aliases:
            return runtime
    raise UnknownRuntime(f"unknown runtime '{name}'; {did_you_mean(name) or 'known: ' + ', '.join(places)}")


def all_runtimes() -> List[Runtime]:
    """All that can be imported."""
    return [runtime for runtime in map(_offered, _places().values()) if runtime is not None]


def names_known_here(names: Sequence[str]) -> Dict[str, Optional[str]]:
    """Each name with the runtime's proper name, or None if it is unknown."""
    found: Dict[str, Optional[str]] = {}
    for name in names:
        try:
            found[name] = runtime_named(name).name
        except UnknownRuntime:
            found[name] = None
    return found


def did_you_mean(name: str) -> Optional[str]:
    """The nearest runtime, as a question."""
    proper = {word: runtime.name for runtime in all_runtimes() for word in (runtime.name, *runtime.aliases)}
    near = difflib.get_close_matches(name, list(proper), 1) or [
        word for word in proper if name and word.startswith(name)
    ]
    return f"did you mean '{proper[near[0]]}'?" if near else None


def _places() -> Dict[str, str]:
    """Name → `module:class`. A built-in one cannot be replaced."""
    from importlib import metadata

    points: Any = metadata.entry_points()
    if hasattr(points, "select"):
        found = points.select(group=GROUP)
    else:  # Python 3.9
        found = points.get(GROUP, ())
    added = {point.name: point.value for point in sorted(found, key=lambda point: str(point.name))}
    return {**BUILT_IN, **{name: place for name, place in added.items() if name not in BUILT_IN}}


def _made(place: str) -> Runtime:
    module, _, attribute = place.partition(":")
    made: Runtime = getattr(importlib.import_module(module), attribute)()
    return made


def _offered(place: str) -> Optional[Runtime]:
    try:
        return _made(place)
    except Exception:  # a broken plug-in fails when it is used; the others still work
        return None


if __name__ == "__main__":
    print(json.dumps({"names": names_known_here(sys.argv[1:]), "known": known_runtimes()}))
