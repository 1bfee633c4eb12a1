"""`.tflite` files: their inputs, and a reference by LiteRT's reference kernels. Without LiteRT, OpenVINO reads them."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, List, Mapping, Optional

from benchmodels.check.reference import Reference, difference
from benchmodels.files.model_file import Dimension, FileInput, Size
from benchmodels.measure.batch import Batch
from benchmodels.measure.work import CallWork
from benchmodels.runtimes.base import Unsupported
from benchmodels.runtimes.litert import interpreter, read_outputs, set_inputs
from benchmodels.types import Array

REFERENCE = "litert reference kernels"


class TfliteFile:
    """Read with LiteRT itself."""

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            opened = interpreter(path, 1)
        except Exception as error:
            lines = str(error).strip().splitlines() or [""]
            raise Unsupported("load", f"{path} is not a TFLite model: {lines[0][:300]}", kind="error") from None
        self.title = os.path.splitext(os.path.basename(path))[0]
        self.inputs: List[FileInput] = [_input(port) for port in opened.get_input_details()]

    def size(self) -> Size:
        return Size()

    def work(self, arrays: Mapping[str, Array]) -> CallWork:
        return CallWork(None, None, "TFLite files are not looked into")

    def batch(self, arrays: Mapping[str, Array]) -> Optional[Batch]:
        return None

    def reference(self, arrays: Mapping[str, Array]) -> Reference:
        kinds = import_module("ai_edge_litert.interpreter").OpResolverType
        engine = interpreter(self._path, 1, experimental_op_resolver_type=kinds.BUILTIN_REF)
        engine.allocate_tensors()
        names = [str(port["name"]) for port in engine.get_output_details()]
        found = []
        for _ in range(2):
            set_inputs(engine, [arrays[each.name] for each in self.inputs])
            engine.invoke()
            found.append(dict(zip(names, read_outputs(engine))))
        return Reference(found[0], REFERENCE, [], difference(*found))


def _input(port: Any) -> FileInput:
    sizes = port["shape_signature"] if len(port["shape_signature"]) else port["shape"]
    shape: List[Dimension] = [int(size) if size >= 0 else f"dim{place}" for place, size in enumerate(sizes)]
    return FileInput(str(port["name"]), shape, str(import_module("numpy").dtype(port["dtype"])))
