"""What is IREE's own: types that it would change, objects that must not outlive their device, threads, the compiler's words."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import wait_for

from benchmodels.runtimes.base import (
    BF16,
    FP16,
    FP32,
    ArtifactFolder,
    Captured,
    CollectedSteps,
    RuntimeOptions,
    Unsupported,
)
from benchmodels.tensors import flatten_call, to_arrays
from benchwright_runtimes.iree import Iree, _explained, kind_of, read_profile

torch = pytest.importorskip("torch")
pytest.importorskip("iree.compiler")
pytest.importorskip("iree.runtime")
pytest.importorskip("onnxscript")


class Calls(torch.nn.Module):
    """A function as a model."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def arrays_of(model: Captured) -> dict[str, Any]:
    return {name: tensor.numpy() for name, tensor in flatten_call(model.args, model.kwargs, model.names)}


def both(
    folder: Path, module: Any, *args: Any, precision: str = FP32, computes_in: str = ""
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What IREE returns, and what eager does."""
    model = Captured(module.eval(), args, {})
    with torch.no_grad():
        expected = to_arrays(module(*args))
    options = RuntimeOptions("cpu", precision, 1)
    Iree().build(model, str(folder), options, CollectedSteps())
    session = Iree().load(ArtifactFolder(str(folder)), options)
    found = session.outputs(session.run(session.prepare(arrays_of(model))))
    assert session.precision == (computes_in or precision)
    session.close()
    return found, expected


@pytest.fixture(scope="module")
def linear(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """A folder with a small build, and its inputs."""
    torch.manual_seed(0)
    folder = str(tmp_path_factory.mktemp("linear"))
    model = Captured(torch.nn.Linear(64, 64).eval(), (torch.randn(8, 64),), {}, ("x",))
    Iree().build(model, folder, RuntimeOptions(), CollectedSteps())
    return folder, arrays_of(model)


def test_float64_is_not_rounded_to_float32(tmp_path: Path):
    weight = 1 + 1e-9 * torch.arange(1.0, 201.0, dtype=torch.float64)
    module = torch.nn.Module()
    module.register_buffer("weight", weight)
    module.forward = lambda x: x * module.weight - x
    found, expected = both(tmp_path, module, torch.ones(200, dtype=torch.float64), computes_in="fp64")
    assert found["output"].dtype == np.float64
    np.testing.assert_allclose(found["output"], expected["output"], rtol=1e-6)  # in float32 all of it would be 0


def test_types_of_outputs_are_those_of_the_model(tmp_path: Path):
    numbers = torch.tensor([0, 100, 200, 250], dtype=torch.uint8)
    module = Calls(lambda x, y: (x + 1, y > 0, y * 2**40, x))
    found, expected = both(tmp_path, module, numbers, torch.arange(4))
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_outputs_that_are_inputs_constants_or_alike_keep_their_places(tmp_path: Path):
    three = torch.full((3,), 3.0)
    module = Calls(lambda x, unused: (x * 2, x * 2, x, three, x[:0]))
    found, expected = both(tmp_path, module, torch.arange(4.0), torch.zeros(5))
    assert list(found) == list(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize(("precision", "low", "high"), [(FP16, 5e-5, 2e-3), (BF16, 5e-4, 2e-2)])
def test_half_precisions_are_as_far_from_float32_as_they_must_be(tmp_path: Path, precision, low, high):
    torch.manual_seed(0)
    found, expected = both(tmp_path, torch.nn.Linear(64, 64), torch.randn(8, 64), precision=precision)
    one, other = found["output"].astype(np.float64), expected["output"].astype(np.float64)
    assert low < np.linalg.norm(one - other) / np.linalg.norm(other) < high


def test_a_convolution_of_bfloat16_is_refused_since_its_weights_may_be_float32(tmp_path: Path):
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
    with pytest.raises(Unsupported, match="not valid ONNX") as failure:
        both(tmp_path, module, torch.randn(1, 3, 8, 8), precision=BF16)
    assert (failure.value.stage, failure.value.operator) == ("convert", "Conv")


def workers() -> int:
    """How many of this process's threads are IREE's."""
    names = [Path(f"/proc/self/task/{task}/comm").read_text() for task in os.listdir("/proc/self/task")]
    return len([name for name in names if name.startswith("iree-worker")])


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_it_has_as_many_workers_as_threads_are_asked_for(linear, threads):
    expected = threads if threads > 1 else 0
    session = Iree().load(ArtifactFolder(linear[0]), RuntimeOptions(threads=threads))
    session.run(session.prepare(linear[1]))
    wait_for(lambda: workers() >= expected)  # they name themselves, some time after they began
    time.sleep(0.1)  # for those that would be too many
    found = workers()
    session.close()
    assert (found, session.details["threads"]) == (expected, threads)


def test_threads_are_divided_among_streams(linear):
    session = Iree().load(ArtifactFolder(linear[0]), RuntimeOptions(threads=4, streams=2))
    stream = session.new_stream()
    assert (stream.details["threads"], session.details["threads_per_stream"]) == (2, 2)
    stream.close()
    session.close()


@pytest.mark.parametrize("threads", [1, 2])
def test_inputs_and_results_may_be_held_longer_than_the_session(linear, threads):
    held = []
    for _ in range(30):  # released after their device, they crash the process or hang it
        session = Iree().load(ArtifactFolder(linear[0]), RuntimeOptions(threads=threads))
        prepared = session.prepare(linear[1])
        held.append((prepared, session.run(prepared)))
        session.close()
        assert prepared.arguments is None
    held.clear()


def test_streams_that_call_at_once_answer_the_same(linear):
    session = Iree().load(ArtifactFolder(linear[0]), RuntimeOptions())
    prepared, expected = session.prepare(linear[1]), session.outputs(session.run(session.prepare(linear[1])))
    answers: list[Any] = []

    def call() -> None:
        stream = session.new_stream()
        own = stream.prepare(linear[1])
        for _ in range(50):
            stream.run(own)
        answers.append(stream.outputs(stream.run(own)))
        stream.close()

    callers = [threading.Thread(target=call) for _ in range(2)]
    for caller in callers:
        caller.start()
    session.run(prepared)
    for caller in callers:
        caller.join(30)
    session.close()
    assert len(answers) == 2
    for answer in answers:
        np.testing.assert_array_equal(answer["output"], expected["output"])


def test_a_file_with_an_open_dimension_and_weights_beside_it_is_compiled_for_the_shape(tmp_path: Path):
    onnx: Any = pytest.importorskip("onnx")
    make, float32 = onnx.helper, onnx.TensorProto.FLOAT
    weight = np.arange(6, dtype=np.float32).reshape(3, 2)
    graph = make.make_graph(
        [make.make_node("MatMul", ["x", "w"], ["m"]), make.make_node("Relu", ["m"], ["y"])],
        "any name",
        [make.make_tensor_value_info("x", float32, ["batch", 3])],
        [make.make_tensor_value_info("y", float32, ["batch", 2])],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 13)], ir_version=8)
    path, folder = tmp_path / "model.onnx", tmp_path / "build"
    onnx.save(model, str(path), save_as_external_data=True, location="beside.bin", size_threshold=0)
    folder.mkdir()
    Iree().build_file(str(path), str(folder), RuntimeOptions(), CollectedSteps(), {"x": (4, 3)})
    session = Iree().load(ArtifactFolder(str(folder)), RuntimeOptions())
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    found = session.outputs(session.run(session.prepare({"x": x})))
    session.close()
    np.testing.assert_allclose(found["y"], np.maximum(x @ weight, 0), rtol=1e-6)


def test_an_operator_without_a_lowering_is_named(tmp_path: Path):
    with pytest.raises(Unsupported, match="unsupported operator DFT") as failure:
        both(tmp_path, Calls(lambda x: torch.view_as_real(torch.fft.rfft(x))), torch.randn(4, 8))
    assert (failure.value.stage, failure.value.kind, failure.value.operator) == ("compile", "unsupported", "DFT")


def test_a_fault_of_the_compiler_is_not_laid_on_the_operator_it_shows():
    said = "Error code: 1\nm.mlir:5:10: error: 'vector.store' op is restricted\n %1 = torch.operator \"onnx.Log\"(%0)\n"
    failure = _explained(said)
    assert (failure.operator, failure.kind, failure.text) == (
        None,
        "error",
        "iree-compile: 'vector.store' op is restricted",
    )
    assert _explained("Error code: -11\nDiagnostics:\n").text == "iree-compile was killed by SIGSEGV"


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("main_graph$async_dispatch_0_matmul_like_32x256x256_f32", "matmul_like"),
        ("main_graph$async_dispatch_7_softmax_4x128x128xf32_generic", "softmax"),
        ("main_graph$async_dispatch_3_conv_2d_nchw_64x3x3_f32", "conv_2d_nchw"),
        ("_encoding_2_encode_32x256xf32_to_32x256xf32", "encode"),
        ("main_graph$async_dispatch_0_slow_memcpy", "slow_memcpy"),
    ],
)
def test_a_dispatch_is_known_by_what_it_does(key, kind):
    assert kind_of(key) == kind


def test_a_profile_leaves_the_first_calls_out():
    key = "main_graph$async_dispatch_0_matmul_like_8x8_f32"
    events = [{"key": key, "duration_ns": ns} for ns in [9000] * 6 + [1000] * 4]
    (row,) = read_profile(events, 2)  # two dispatches in each of 3 + 2 calls
    assert (row.op, row.calls) == ("matmul_like", 2.0)
    assert row.seconds_per_call == pytest.approx(2e-6)
