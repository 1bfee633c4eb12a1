"""Makes the small model files of `models/` again, and writes their checksums into the specifications beside them.

    python specifications/make_models.py

One network, a perceptron with fixed weights, in three formats, with an input and the output that every runtime must give for
it. It needs onnx, torch and openvino; what it makes is in the repository, so only whoever changes the network needs to run it.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import numpy as np

MODELS = Path(__file__).parent / "models"
INPUTS, HIDDEN, OUTPUTS = 8, 16, 4


def weights() -> dict[str, np.ndarray]:
    random = np.random.default_rng(7)
    shapes = {"w1": (HIDDEN, INPUTS), "b1": (HIDDEN,), "w2": (OUTPUTS, HIDDEN), "b2": (OUTPUTS,)}
    return {name: random.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}


def golden(x: np.ndarray, w: dict[str, np.ndarray]) -> np.ndarray:
    """The output in double precision."""
    exact = {name: array.astype(np.float64) for name, array in w.items()}
    hidden = np.maximum(x.astype(np.float64) @ exact["w1"].T + exact["b1"], 0)
    return hidden @ exact["w2"].T + exact["b2"]


def make_onnx(folder: Path, w: dict[str, np.ndarray]) -> None:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], transB=1),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "w2", "b2"], ["y"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", INPUTS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", OUTPUTS])],
        [numpy_helper.from_array(array, name) for name, array in w.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    (folder / "mlp.onnx").write_bytes(model.SerializeToString())


def make_torch_export(folder: Path, w: dict[str, np.ndarray]) -> None:
    import torch

    class Perceptron(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = torch.nn.Linear(INPUTS, HIDDEN), torch.nn.Linear(HIDDEN, OUTPUTS)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.second(torch.relu(self.first(x)))

    module = Perceptron().eval()
    tensors = {name: torch.from_numpy(array) for name, array in w.items()}
    module.load_state_dict(
        {
            "first.weight": tensors["w1"],
            "first.bias": tensors["b1"],
            "second.weight": tensors["w2"],
            "second.bias": tensors["b2"],
        }
    )
    shapes = {"x": {0: torch.export.Dim("batch", min=1, max=64)}}
    exported = torch.export.export(module, (torch.zeros(2, INPUTS),), dynamic_shapes=shapes)
    for node in exported.graph.nodes:
        node.meta.pop("stack_trace", None)  # it names folders of whoever made the file
    torch.export.save(exported, folder / "mlp.pt2")


def make_openvino(folder: Path, onnx_file: Path) -> None:
    import openvino

    model = openvino.convert_model(onnx_file)
    openvino.save_model(model, folder / "mlp.xml", compress_to_fp16=False)


def write_sums(specification: Path) -> None:
    """The SHA-256 of every file that it names, in place: nothing else of the text changes."""
    text = specification.read_text()
    for file in re.findall(r'"location": "([^":]+)"', text):
        digest = hashlib.sha256((specification.parent / file).read_bytes()).hexdigest()
        entry = re.compile(rf'("location": "{re.escape(file)}",\s*"sha256": ")[0-9a-f]*(")')
        text = entry.sub(rf"\g<1>{digest}\g<2>", text)
    json.loads(text)
    specification.write_text(text)


def main() -> None:
    w = weights()
    x = np.random.default_rng(8).normal(0, 1, (2, INPUTS)).astype(np.float32)
    folders = {name: MODELS / name / "mlp" for name in ("onnx", "torch_export", "openvino")}
    make_onnx(folders["onnx"], w)
    make_torch_export(folders["torch_export"], w)
    make_openvino(folders["openvino"], folders["onnx"] / "mlp.onnx")
    for folder in folders.values():
        np.save(folder / "x.npy", x)
        (folder / "y.txt").write_text("".join(f"{value!r}\n" for value in golden(x, w).reshape(-1).tolist()))
    for specification in MODELS.glob("*/*/*.json"):
        write_sums(specification)


if __name__ == "__main__":
    main()
