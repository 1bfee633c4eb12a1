"""OpenVINO files (`.xml` with `.bin`): their inputs, and a reference by OpenVINO itself in float32."""

from __future__ import annotations

import math
from typing import Any, List, Mapping, Optional

from benchmodels.check.reference import Reference, difference
from benchmodels.files.model_file import Dimension, FileInput, Size
from benchmodels.measure.batch import Batch
from benchmodels.measure.work import CallWork
from benchmodels.runtimes.base import Unsupported
from benchmodels.runtimes.openvino import openvino
from benchmodels.types import Array

REFERENCE = "openvino CPU float32"
NO_WEIGHTS = ("i64", "boolean")  # shapes, axes and indices


class OpenvinoFile:
    """Read with OpenVINO itself."""

    def __init__(self, path: str) -> None:
        try:
            library = openvino()
        except ImportError:
            raise Unsupported(
                "load", ".xml files need openvino; pip install 'benchwright[openvino]'", kind="unavailable"
            ) from None
        try:
            self._core = library.Core()
            self._model = self._core.read_model(path)
        except Exception as error:
            raise Unsupported("load", f"{path} is not an OpenVINO model: {_last_line(error)}", kind="error") from None
        self.title = str(self._model.get_friendly_name())
        self.inputs: List[FileInput] = [_input(port) for port in self._model.inputs]

    def size(self) -> Size:
        constants = [node.output(0) for node in self._model.get_ops() if node.get_type_name() == "Constant"]
        weights = [port for port in constants if port.get_element_type().get_type_name() not in NO_WEIGHTS]
        return Size(sum(map(_elements, weights)), sum(map(_bytes, weights)))

    def work(self, arrays: Mapping[str, Array]) -> CallWork:
        self._reshape(arrays)
        results = self._model.outputs
        moved = None
        if not any(port.get_partial_shape().is_dynamic for port in results):
            inputs = sum(int(array.nbytes) for array in arrays.values())
            moved = float((self.size().bytes_ or 0) + inputs + sum(map(_bytes, results)))
        return CallWork(None, moved, "OpenVINO files are not looked into")

    def batch(self, arrays: Mapping[str, Array]) -> Optional[Batch]:
        """From the layout stored with an input, if any, such as NCHW."""
        for port, each in zip(self._model.inputs, self.inputs):
            layout = str(port.get_node().get_layout()).strip("[]").replace(",", "")
            if "N" in layout and "." not in layout:
                return Batch(int(arrays[each.name].shape[layout.index("N")]), f"{each.name} is laid out as {layout}")
        return None

    def reference(self, arrays: Mapping[str, Array]) -> Reference:
        settings = {"INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": "1"}
        self._reshape(arrays)
        request = self._core.compile_model(self._model, "CPU", settings).create_infer_request()
        names = [each.name for each in self.inputs]
        found = []
        for _ in range(2):
            request.infer([arrays[name] for name in names])
            found.append(
                {_name(port, i): request.get_output_tensor(i).data.copy() for i, port in enumerate(self._model.outputs)}
            )
        return Reference(found[0], REFERENCE, [], difference(*found))

    def _reshape(self, arrays: Mapping[str, Array]) -> None:
        self._model.reshape({i: list(arrays[each.name].shape) for i, each in enumerate(self.inputs)})


def _input(port: Any) -> FileInput:
    partial = port.get_partial_shape()
    shape: Optional[List[Dimension]] = None
    if not partial.rank.is_dynamic:
        shape = [size.get_length() if size.is_static else f"dim{place}" for place, size in enumerate(partial)]
    return FileInput(_name(port, port.get_index()), shape, str(port.get_element_type().to_dtype()))


def _name(port: Any, index: int) -> str:
    return str(port.get_any_name()) if port.get_names() else str(index)


def _elements(port: Any) -> int:
    return math.prod(port.get_shape())


def _bytes(port: Any) -> int:
    return _elements(port) * int(port.get_element_type().bitwidth) // 8


def _last_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
