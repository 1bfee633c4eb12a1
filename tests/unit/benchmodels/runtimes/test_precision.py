"""A model in another precision: what was captured stays as it is, and what is told is what is computed."""

from __future__ import annotations

import shutil
import threading
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx_export import read_operators_once

from benchmodels.arrays import to_array
from benchmodels.check.output_check import TOLERANCES
from benchmodels.runtimes.base import ArtifactFolder, Captured, CollectedSteps, Inputs, RuntimeOptions, Unsupported
from benchmodels.runtimes.parts import weight_only
from benchmodels.runtimes.parts.artifact import BuiltModel, as_type, without_bits, write_artifact
from benchmodels.runtimes.parts.torch_modules import fitted
from benchmodels.runtimes.parts.torch_session import _device_times
from benchmodels.runtimes.registry import runtime_named
from benchmodels.tensors import to_arrays

torch = pytest.importorskip("torch")

LIMITS = {"fp32": 1e-6, "bf16": 5e-2, "fp16": 1e-2, "int8-dynamic": 1e-1}


class Tied(torch.nn.Module):
    """The head has the weights of the embedding; a buffer counts."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(30, 16)
        self.mix = torch.nn.Linear(16, 16)
        self.head = torch.nn.Linear(16, 30, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("steps", torch.tensor(3))

    def forward(self, ids: Any, scale: Any) -> Any:
        return self.head(self.mix(self.embed(ids)) * scale)


def call() -> Captured:
    torch.manual_seed(1)
    return Captured(Tied().eval(), (torch.randint(0, 30, (2, 5)), torch.rand(16)), {}, ("ids", "scale"))


def relative_error(found: Any, expected: Any) -> float:
    return float(np.linalg.norm(found.astype(np.float64) - expected) / np.linalg.norm(expected))


def expected_of(model: Captured) -> Any:
    with torch.no_grad():
        return to_array(model.module.double()(model.args[0], model.args[1].double()))


def test_int8_is_computed_by_an_engine_that_runs_here_and_torch_keeps_its_choice():
    """On ARM, torch chooses one for x86 that cannot run; the engine used is told."""
    before = torch.backends.quantized.engine
    model = call()
    session = runtime_named("torch-eager").load(model, RuntimeOptions("cpu", "int8-dynamic", 1))
    assert torch.backends.quantized.engine == before
    assert session.details["quantized_engine"] in torch.backends.quantized.supported_engines
    session.run(session.prepare(model))
    session.close()


@pytest.mark.parametrize("precision", list(LIMITS))
def test_torch_computes_in_the_precision_and_leaves_the_model_alone(precision):
    model = call()
    before = {name: tensor.clone() for name, tensor in model.module.state_dict().items()}
    session = runtime_named("torch-eager").load(model, RuntimeOptions("cpu", precision, 1))
    outputs = session.outputs(session.run(session.prepare(model)))["output"]
    session.close()
    assert session.precision == precision
    assert not torch.is_inference_mode_enabled()
    for name, tensor in model.module.state_dict().items():
        assert tensor.dtype == before[name].dtype
        assert torch.equal(tensor, before[name])
    error = relative_error(outputs, expected_of(model))
    assert error < LIMITS[precision]
    assert precision == "fp32" or error > LIMITS["fp32"]


def test_weights_that_are_shared_stay_shared_in_a_copy():
    fit = fitted(call().module, RuntimeOptions("cpu", "bf16"))
    assert fit.module.head.weight is fit.module.embed.weight
    assert fit.module.head.weight.dtype == torch.bfloat16
    assert fit.module.steps.dtype == torch.int64


@pytest.mark.filterwarnings("ignore")
def test_a_weight_that_is_computed_before_each_call_is_no_obstacle_to_a_copy():
    model = torch.nn.utils.weight_norm(torch.nn.Linear(4, 4))
    assert model.weight.grad_fn is not None
    x = torch.randn(2, 4)
    found = fitted(model, RuntimeOptions(precision="bf16")).module(x.bfloat16())
    assert torch.allclose(found.float(), model(x), atol=0.05)


def test_a_model_that_is_bfloat16_by_itself_is_told_as_such():
    model = call()
    model = model._replace(module=model.module.bfloat16(), args=(model.args[0], model.args[1].bfloat16()))
    session = runtime_named("torch-eager").load(model, RuntimeOptions("cpu", "fp32", 1))
    session.close()
    assert session.precision == "bf16"


def test_weights_that_are_transposed_can_be_quantised_by_onnxruntime(tmp_path):
    pytest.importorskip("onnxruntime")
    read_operators_once()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10)).eval()
    captured = Captured(model, (torch.rand(4, 16),), {}, ("input",))
    options, runtime = RuntimeOptions("cpu", "int8-dynamic"), runtime_named("onnxruntime")
    (tmp_path / "built").mkdir()
    runtime.build(captured, str(tmp_path / "built"), options, CollectedSteps())
    (tmp_path / "plain").mkdir()
    runtime.build(captured, str(tmp_path / "plain"), RuntimeOptions("cpu", "fp32"), CollectedSteps())
    (tmp_path / "of_file").mkdir()
    (file,) = (tmp_path / "plain").glob("*.onnx")
    before = file.read_bytes()
    runtime.build_file(str(file), str(tmp_path / "of_file"), options, CollectedSteps(), {})
    assert file.read_bytes() == before
    for folder in ("built", "of_file"):
        session = runtime.load(ArtifactFolder(str(tmp_path / folder)), options)
        (found,) = session.outputs(session.run(session.prepare({"input": captured.args[0].numpy()}))).values()
        expected = model(captured.args[0]).detach().numpy()
        assert np.linalg.norm(found - expected) / np.linalg.norm(expected) < LIMITS["int8-dynamic"]


def test_nothing_to_quantise_is_no_int8():
    with pytest.raises(Unsupported, match="no Linear layer"):
        runtime_named("torch-eager").load(Captured(torch.nn.ReLU(), (), {}), RuntimeOptions("cpu", "int8-dynamic"))


def test_inputs_that_a_call_changes_or_uses_up_are_noticed():
    class Grows(torch.nn.Module):
        def forward(self, x: Any, cache: Any) -> Any:
            x += 1
            cache.kept.append(x)
            return x

    inputs = Inputs((torch.zeros(2), SimpleNamespace(kept=[])), {})
    session = runtime_named("torch-eager").load(Captured(Grows(), *inputs), RuntimeOptions())
    prepared = session.prepare(inputs)
    session.run(prepared)
    assert session.consumes_inputs
    assert session.inputs_changed(prepared, inputs)
    assert inputs.args[0].tolist() == [0, 0]
    assert inputs.args[1].kept == []
    session.close()


def test_another_thread_calls_in_inference_mode_too():
    class Mode(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x + torch.is_inference_mode_enabled()

    inputs = Inputs((torch.zeros(1),), {})
    session = runtime_named("torch-eager").load(Captured(Mode(), *inputs), RuntimeOptions(streams=2))
    stream = session.new_stream()
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(stream.run(stream.prepare(inputs))))
    thread.start()
    thread.join()
    session.close()
    assert found[0].item() == 1


@pytest.mark.parametrize("precision", ["fp16", "int8-dynamic"])
def test_onnxruntime_computes_in_the_precision(tmp_path: Path, precision):
    pytest.importorskip("onnxscript")
    model, options, steps = call(), RuntimeOptions("cpu", precision, 1), CollectedSteps()
    runtime = runtime_named("onnxruntime")
    runtime.build(model, str(tmp_path), options, steps)
    session = runtime.load(ArtifactFolder(str(tmp_path)), options)
    arrays = {"ids": model.args[0].numpy(), "scale": model.args[1].numpy()}
    outputs = session.outputs(session.run(session.prepare(arrays)))["output"]
    session.close()
    assert session.precision == precision
    assert ("convert" in steps.seconds) == (precision == "int8-dynamic")
    assert LIMITS["fp32"] < relative_error(outputs, expected_of(model)) < LIMITS[precision]


def test_bfloat16_of_arrays_is_rounded_as_torch_does():
    values = torch.cat([torch.randn(2000) * 1e3, torch.tensor([0.0, -0.0, float("inf"), float("nan"), 1e-40, 3.4e38])])
    bits = as_type(values.numpy(), "bfloat16")
    assert np.array_equal(without_bits(bits, "bfloat16"), to_arrays(values.bfloat16())["output"], equal_nan=True)


def test_a_package_that_was_compiled_for_other_threads_is_not_run(tmp_path: Path):
    if shutil.which("g++") is None:
        pytest.skip("no compiler")
    write_artifact(str(tmp_path), BuiltModel("model.pt2", threads=2))
    runtime = runtime_named("aot-inductor")
    with pytest.raises(Unsupported, match="compiled for 2 threads, not 1") as failure:
        runtime.load(ArtifactFolder(str(tmp_path)), RuntimeOptions(threads=1))
    assert failure.value.kind == "changed"
    assert runtime.depends_on(RuntimeOptions(threads=1)) != runtime.depends_on(RuntimeOptions(threads=2))


def event(key: str, device: str, own_us: float) -> Any:
    return SimpleNamespace(key=key, device_type=f"DeviceType.{device}", self_device_time_total=own_us, count=10)


def test_work_on_a_device_is_counted_once_by_the_operator_that_launched_it():
    kernel, annotation = event("gemm_kernel", "CUDA", 100), event("aten::mm", "CUDA", 100)
    assert _device_times([event("aten::mm", "CPU", 100), kernel, annotation]) == {("aten::mm", ""): (1e-4, 10)}
    assert _device_times([event("aten::mm", "CPU", 0), kernel]) == {("gemm_kernel", ""): (1e-4, 10)}
    partly = _device_times([event("aten::mm", "CPU", 60), kernel])
    assert sum(seconds for seconds, _ in partly.values()) == pytest.approx(1e-4)


def test_bound_to_memory_of_the_device_it_returns_what_a_plain_run_does(tmp_path: Path):
    """As on an accelerator; here the device is the CPU."""
    onnx: Any = pytest.importorskip("onnx")
    sessions: Any = import_module("benchmodels.runtimes.onnxruntime")
    sides = [onnx.helper.make_tensor_value_info(name, 1, [2, 2]) for name in ("a", "b", "c")]
    product = onnx.helper.make_node("MatMul", ["a", "b"], ["c"])
    graph = onnx.helper.make_graph([product], "product", sides[:2], sides[2:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, str(tmp_path / "model.onnx"))
    a, b = np.eye(2) * 3, np.arange(4).reshape(2, 2).T  # neither in float32 nor in one piece
    for kind in (sessions.OrtSession, sessions.BoundSession):
        session = kind(BuiltModel(str(tmp_path / "model.onnx")), "CPUExecutionProvider", RuntimeOptions())
        prepared = session.prepare({"a": a, "b": b, "unused": a})
        first = session.outputs(session.run(prepared))
        session.run(session.prepare({"a": a * 2, "b": b}))
        np.testing.assert_array_equal(first["c"], a @ b)
        assert session.profile(prepared, 5)[0].op == "MatMul"
        with pytest.raises(Unsupported, match="no array for b"):
            session.prepare({"a": a})
        session.close()


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_openvino_computes_in_the_precision_of_a_file(tmp_path: Path, precision):
    pytest.importorskip("openvino")
    ov: Any = import_module("benchmodels.runtimes.openvino").openvino()
    weights = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    x = ov.opset13.parameter([-1, 64], np.float32, name="x")
    model = ov.Model([ov.opset13.matmul(x, weights, False, False)], [x], "product")
    model.inputs[0].get_tensor().set_names({"x"})
    ov.save_model(model, str(tmp_path / "given.xml"), compress_to_fp16=False)
    runtime, options = runtime_named("openvino"), RuntimeOptions("cpu", precision, 1)
    if precision.upper() not in ("FP32", *ov.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")):
        pytest.skip(f"this processor has no {precision}")
    (tmp_path / "built").mkdir()
    runtime.build_file(str(tmp_path / "given.xml"), str(tmp_path / "built"), options, CollectedSteps(), {"x": (3, 64)})
    session = runtime.load(ArtifactFolder(str(tmp_path / "built")), options)
    array = np.random.default_rng(1).standard_normal((3, 64)).astype(np.float32)
    outputs = session.outputs(session.run(session.prepare({"x": array})))
    session.close()
    assert session.precision == precision
    (found,) = outputs.values()
    error = relative_error(found, array.astype(np.float64) @ weights)
    assert error < LIMITS[precision]
    assert precision == "fp32" or error > LIMITS["fp32"]


@pytest.mark.parametrize("precision", ["int8-weights", "fp8-weights"])
def test_weights_alone_are_smaller_what_is_computed_stays_as_it_was(precision):
    pytest.importorskip("torchao")
    torch.manual_seed(2)
    layers = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32)).eval()
    model = Captured(layers, (torch.randn(4, 64),), {}, ("x",))
    before = layers[0].weight.detach().clone()
    session = runtime_named("torch-eager").load(model, RuntimeOptions("cpu", precision, 1))
    found = session.run(session.prepare(model))
    session.close()
    assert (session.precision, session.details["computes_in"]) == (precision, "fp32")
    error = relative_error(to_array(found), to_array(layers.double()(model.args[0].double())))
    assert 1e-5 < error < TOLERANCES[precision].relative_l2, "other weights than in fp32, and close to them"
    assert torch.equal(layers[0].weight.detach().float(), before), "the model itself keeps its weights"


def test_small_weights_need_torchao_a_kernel_and_a_linear_layer(monkeypatch):
    eager = runtime_named("torch-eager")
    monkeypatch.setattr(weight_only, "is_importable", lambda name: False)
    assert "pip install torchao" in eager.unavailable(RuntimeOptions("cpu", "int8-weights"))
    monkeypatch.setattr(weight_only, "is_importable", lambda name: True)
    assert "no kernel for int4-weights on cpu" in eager.unavailable(RuntimeOptions("cpu", "int4-weights"))
    assert eager.unavailable(RuntimeOptions("cpu", "int8-weights")) is None
    pytest.importorskip("torchao")
    with pytest.raises(Unsupported, match="no Linear layer"):
        eager.load(Captured(torch.nn.ReLU(), (), {}), RuntimeOptions("cpu", "int8-weights"))
