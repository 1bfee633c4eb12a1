"""What is special to MNN: its converter's ways, its own types, and which of its two interfaces runs a model."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_export import read_operators_once

from benchmodels.runtimes.base import ArtifactFolder, Captured, CollectedSteps, RuntimeOptions, Session, Unsupported
from benchmodels.tensors import flatten_call, to_arrays
from benchwright_runtimes.mnn import CONVERTER, Mnn

pytest.importorskip("MNN")
torch = pytest.importorskip("torch")

# Tests share a process, since the import of torch takes longest.
pytestmark = pytest.mark.xdist_group("mnn")


@pytest.fixture(scope="module", autouse=True)
def quick_exports() -> None:
    pytest.importorskip("onnxscript")
    read_operators_once()


class Model(torch.nn.Module):
    """A function as a module, with the parts that have weights."""

    def __init__(self, function: Callable[..., Any], *parts: Any) -> None:
        super().__init__()
        self.function = function
        self.parts = torch.nn.ModuleList(parts)

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def built(folder: Path, function: Callable[..., Any], inputs: tuple[Any, ...], *parts: Any) -> Session:
    names = tuple("abc"[: len(inputs)])
    Mnn().build(
        Captured(Model(function, *parts).eval(), inputs, {}, names), str(folder), RuntimeOptions(), CollectedSteps()
    )
    return Mnn().load(ArtifactFolder(str(folder)), RuntimeOptions())


def arrays_of(*inputs: Any) -> dict[str, Any]:
    return to_arrays(dict(flatten_call(inputs, {}, tuple("abc"[: len(inputs)]))))


def answered(session: Session, *inputs: Any) -> list[Any]:
    return list(session.outputs(session.run(session.prepare(arrays_of(*inputs)))).values())


def error(array: Any, expected: Any) -> float:
    assert array.shape == tuple(expected.shape)
    exact = expected.double().detach().numpy()
    return float(np.linalg.norm(array.astype(np.float64) - exact) / np.linalg.norm(exact))


def test_what_its_converter_gets_wrong_or_lacks_is_right_all_the_same(tmp_path):
    x = torch.linspace(-4, 4, 400).reshape(4, 100)
    session = built(tmp_path, lambda a: (torch.nn.functional.gelu(a), torch.isnan(torch.log(a))), (x,))
    gelu, not_a_number = answered(session, x)
    assert error(gelu, torch.nn.functional.gelu(x.double())) < 1e-6  # its tanh approximation misses by 1e-4
    assert np.array_equal(not_a_number, torch.isnan(torch.log(x)).numpy())
    assert not (tmp_path / "onnx").exists()


def test_products_are_not_rounded(tmp_path):
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(512, 64), torch.randn(8, 512)
    with torch.no_grad():
        [found] = answered(built(tmp_path, lambda a: layer(a), (x,), layer), x)
        assert error(found, layer.double()(x.double())) < 1e-6


def activation_error(folder: Path) -> float:
    """How far MNN's sigmoid and tanh are off here: 3e-5 on ARM, where it approximates them."""
    x = torch.linspace(-8, 8, 2000).reshape(4, 500)
    found = answered(built(folder, lambda a: (torch.sigmoid(a), torch.tanh(a)), (x,)), x)
    exact = (torch.sigmoid(x.double()).numpy(), torch.tanh(x.double()).numpy())
    return max(float(np.abs(one - other).max()) for one, other in zip(found, exact, strict=True))


def test_an_lstm_on_which_its_converter_crashes_is_converted_another_way(tmp_path):
    torch.manual_seed(0)
    (tmp_path / "activations").mkdir()
    (tmp_path / "lstm").mkdir()
    layer, x = torch.nn.LSTM(8, 16, batch_first=True), torch.randn(2, 5, 8)
    [found] = answered(built(tmp_path / "lstm", lambda a: layer(a)[0], (x,), layer), x)
    assert error(found, layer(x)[0]) < max(1e-5, 2 * activation_error(tmp_path / "activations"))


def test_a_convolution_over_one_dimension_returns_no_other(tmp_path):
    layer, x = torch.nn.Conv1d(3, 4, 3), torch.randn(2, 3, 20)
    session = built(tmp_path, lambda a: torch.relu(layer(a)), (x,), layer)
    assert error(answered(session, x)[0], torch.relu(layer(x))) < 1e-6
    assert error(answered(session.new_stream(), x)[0], torch.relu(layer(x))) < 1e-6


def test_an_operator_it_lacks_is_named(tmp_path):
    with pytest.raises(Unsupported, match="unsupported operator DFT: These Op Not Support") as failure:
        built(tmp_path, lambda a: torch.fft.rfft(a).abs(), (torch.randn(4, 8),))
    assert (failure.value.stage, failure.value.kind, failure.value.operator) == ("convert", "unsupported", "DFT")


@pytest.mark.parametrize(
    ("value", "reason"),
    [(torch.tensor([2**40]), "integers of more than 32 bits"), (torch.zeros(0, dtype=torch.int64), "is empty")],
    ids=["large", "empty"],
)
def test_inputs_it_would_misread_are_refused(tmp_path, value, reason):
    session = built(tmp_path, lambda a: a * 2, (torch.tensor([7]),))
    assert answered(session, torch.tensor([-(2**30)])) == [-(2**31)]
    with pytest.raises(Unsupported, match=reason):
        session.prepare(arrays_of(value))


def test_bfloat16_is_not_computed_in_something_else(tmp_path):
    with pytest.raises(Unsupported, match="is bfloat16, which MNN does not have"):
        built(tmp_path, lambda a: a * 2, (torch.ones(3, dtype=torch.bfloat16),))


def with_branches(path: Path) -> None:
    """`a` doubled where `b` is positive, and with its sign changed where it is not."""
    onnx: Any = pytest.importorskip("onnx")
    make, single = onnx.helper, onnx.TensorProto.FLOAT
    y = make.make_tensor_value_info("y", single, (4, 8))
    then = make.make_graph([make.make_node("Add", ["a", "a"], ["y"])], "then", [], [y])
    otherwise = make.make_graph([make.make_node("Neg", ["a"], ["y"])], "otherwise", [], [y])
    nodes = [
        make.make_node("Greater", ["b", "zero"], ["positive"]),
        make.make_node("If", ["positive"], ["y"], then_branch=then, else_branch=otherwise),
    ]
    inputs = [make.make_tensor_value_info("a", single, (4, 8)), make.make_tensor_value_info("b", single, ())]
    zero = make.make_tensor("zero", single, (), [0.0])
    opset = [make.make_opsetid("", 17)]
    graph = make.make_graph(nodes, "branches", inputs, [y], [zero])
    onnx.save(make.make_model(graph, opset_imports=opset, ir_version=10), str(path))


def test_a_model_with_branches_is_run_by_its_module_alone(tmp_path):
    with_branches(tmp_path / "model.onnx")
    x = torch.randn(4, 8)
    (tmp_path / "built").mkdir()
    Mnn().build_file(str(tmp_path / "model.onnx"), str(tmp_path / "built"), RuntimeOptions(), CollectedSteps(), {})
    session = Mnn().load(ArtifactFolder(str(tmp_path / "built")), RuntimeOptions())
    stream = session.new_stream()
    for value, expected in ((1.0, x * 2), (-1.0, -x)):
        assert error(answered(session, x, torch.tensor(value))[0], expected) < 1e-6
        assert error(answered(stream, x, torch.tensor(value))[0], expected) < 1e-6
    assert "the GIL" in session.details["streams"]
    [row] = session.profile(session.prepare(arrays_of(x, torch.ones(()))), 3)
    assert (row.op, row.calls) == ("the runtime", 1.0)
    assert row.seconds_per_call > 0


def test_outputs_that_are_inputs_constants_or_alike_keep_their_places(tmp_path):
    layer, x = torch.nn.Linear(4, 4), torch.randn(2, 4)
    three = torch.full((3,), 3.0)

    def passing(a: Any, b: Any) -> Any:
        made = layer(a)
        return made, made, a, three

    session = built(tmp_path, passing, (x, torch.zeros(5)), layer)
    for caller in (session, session.new_stream()):
        found = answered(caller, x, torch.zeros(5))
        assert [error(*pair) < 1e-6 for pair in zip(found, (layer(x), layer(x), x, three), strict=True)] == [True] * 4


def test_an_onnx_file_takes_the_shape_it_is_given(tmp_path):
    onnx: Any = pytest.importorskip("onnx")
    node = onnx.helper.make_node("Gelu", ["x"], ["y"])
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", 3]) for name in "xy"]
    graph = onnx.helper.make_graph([node], "one", values[:1], values[1:])
    path = tmp_path / "model.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10), path)
    (tmp_path / "built").mkdir()
    Mnn().build_file(str(path), str(tmp_path / "built"), RuntimeOptions(), CollectedSteps(), {"x": (5, 3)})
    session = Mnn().load(ArtifactFolder(str(tmp_path / "built")), RuntimeOptions())
    x = torch.randn(5, 3)
    for caller in (session, session.new_stream()):
        outputs = caller.outputs(caller.run(caller.prepare({"x": x.numpy()})))
        assert list(outputs) == ["y"]
        assert error(outputs["y"], torch.nn.functional.gelu(x)) < 1e-6


def test_a_damaged_file_is_a_failure_of_its_load(tmp_path):
    built(tmp_path, lambda a: a * 2, (torch.ones(3),)).close()
    (tmp_path / "model.mnn").write_bytes(b"no model" * 20)
    with pytest.raises(Unsupported, match="MNN cannot load") as failure:
        Mnn().load(ArtifactFolder(str(tmp_path)), RuntimeOptions())
    assert (failure.value.stage, failure.value.kind) == ("load", "error")


def python(code: str) -> str:
    """What it printed after "found:"; MNN prints lines of its own, before or behind it."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    [found] = re.findall("^found: (.*)$", done.stdout, re.MULTILINE)
    return str(found)


def test_its_converter_neither_reports_nor_installs_anything():
    code = f"{CONVERTER}; print('found:', [name for name in sys.modules if name.startswith(('MNN', 'aliyun', 'pip'))])"
    assert python(code) == "[]"


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads in /proc")
def test_it_starts_as_many_threads_as_it_says_and_needs_no_torch(tmp_path):
    built(tmp_path, lambda a: a * 2, (torch.ones(3),)).close()
    counts = []
    for threads in (1, 3):
        code = (
            "import os, sys; from benchmodels.runtimes.base import ArtifactFolder, RuntimeOptions\n"
            "from benchwright_runtimes.mnn import Mnn\n"
            f"session = Mnn().load(ArtifactFolder({str(tmp_path)!r}), RuntimeOptions(threads={threads}))\n"
            "print('found:', session.details['threads'], len(os.listdir('/proc/self/task')), 'torch' in sys.modules)"
        )
        told, there, imported = python(code).split()
        assert (told, imported) == (str(threads), "False")
        counts.append(int(there))
    assert counts[1] - counts[0] == 2
