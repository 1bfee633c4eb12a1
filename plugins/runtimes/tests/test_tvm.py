"""TVM: what its ONNX front end reads rightly and what it lacks, which compiler it wants, and what a process that only runs has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmodels.runtimes.base import ArtifactFolder, Captured, CollectedSteps, RuntimeOptions, Unsupported
from benchmodels.runtimes.parts.artifact import read_artifact
from benchwright_runtimes.tvm import Tvm

torch = pytest.importorskip("torch")
pytest.importorskip("tvm")
onnx = pytest.importorskip("onnx")

pytestmark = [pytest.mark.xdist_group("runtime tvm"), pytest.mark.long]


class Last(torch.nn.Module):
    """Ends that are counted from behind, and products."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 4)

    def forward(self, x: Any, places: Any) -> Any:
        return self.layer(x)[:, -1], x[:, places]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Captured]:
    torch.manual_seed(0)
    model = Captured(Last().eval(), (torch.randn(2, 5, 8), torch.tensor([-1, 0, -2])), {}, ("x", "places"))
    folder = tmp_path_factory.mktemp("tvm")
    Tvm().build(model, str(folder), RuntimeOptions(), CollectedSteps())
    return folder, model


def test_places_counted_from_the_end_are_those(built):
    folder, model = built
    session = Tvm().load(ArtifactFolder(str(folder)), RuntimeOptions())
    arrays = dict(zip(model.names, (tensor.numpy() for tensor in model.args), strict=True))
    outputs = session.outputs(session.run(session.prepare(arrays)))
    with torch.no_grad():
        expected = model.module(*model.args)
    for found, wanted in zip(outputs.values(), expected, strict=True):
        np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-5, atol=1e-6)
    session.close()


def test_a_process_that_only_runs_has_no_torch_and_the_threads_it_was_given(built):
    code = (
        "import json, sys\n"
        "from benchmodels.runtimes.base import ArtifactFolder, RuntimeOptions\n"
        "from benchwright_runtimes.tvm import Tvm\n"
        "session = Tvm().load(ArtifactFolder(sys.argv[1]), RuntimeOptions(threads=int(sys.argv[2])))\n"
        "print(json.dumps([session.details, 'torch' in sys.modules]))"
    )
    command = [sys.executable, "-c", code, str(built[0]), "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    details, has_torch = json.loads(done.stdout)
    assert details["threads"] == min(2, os.cpu_count() or 1)  # TVM has no more than there are processors
    assert details["tuning"].startswith("none")
    assert not has_torch


def test_an_operator_that_its_front_end_lacks_is_named(tmp_path: Path):
    model = Captured(torch.nn.LSTM(4, 4), (torch.randn(3, 1, 4),), {}, ("x",))
    with pytest.raises(Unsupported, match="unsupported operator LSTM") as failure:
        Tvm().build(model, str(tmp_path), RuntimeOptions(), CollectedSteps())
    assert (failure.value.stage, failure.value.kind, failure.value.operator) == ("convert", "unsupported", "LSTM")


def test_a_file_with_a_free_dimension_is_built_for_the_shape_in_the_precision_it_has(tmp_path: Path):
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT16
    weights = np.arange(6, dtype=np.float16).reshape(3, 2)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["in.x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("in.x", kind, ["n", 3])],
        [helper.make_tensor_value_info("y", kind, ["n", 2])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    path, folder = tmp_path / "product.onnx", tmp_path / "built"
    folder.mkdir()
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), path)
    runtime = Tvm()
    runtime.build_file(str(path), str(folder), RuntimeOptions(), CollectedSteps(), {"in.x": (4, 3)})
    session = runtime.load(ArtifactFolder(str(folder)), RuntimeOptions())
    x = np.ones((4, 3), dtype=np.float16)
    outputs = session.outputs(session.run(session.prepare({"in.x": x})))
    assert session.precision == read_artifact(ArtifactFolder(str(folder))).precision == "fp16"
    np.testing.assert_array_equal(outputs["y"], x @ weights)
    with pytest.raises(Exception, match="4"):
        session.run(session.prepare({"in.x": x[:2]}))
    session.close()


def test_want_of_a_compiler_is_told_before_anything_is_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.delenv("CC", raising=False)
    reason = Tvm().unavailable(RuntimeOptions())
    assert reason is not None
    assert "C++ compiler" in reason
    assert "g++" in reason
