"""What every runtime must do: take any inputs, return what eager returns, tell the truth about itself, and close."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from onnx_export import read_operators_once
from plugin_package import ADDED
from plugin_package import RUNTIMES as OF_PLUGINS

from benchmodels.arrays import load_arrays, save_arrays
from benchmodels.measure.measured_loops import times_in_runtime
from benchmodels.runtimes.base import (
    ARTIFACT,
    ArtifactFolder,
    Captured,
    CollectedSteps,
    Runtime,
    RuntimeOptions,
    Session,
    TimesItself,
    Unsupported,
)
from benchmodels.runtimes.registry import GROUP, known_runtimes, runtime_named
from benchmodels.tensors import flatten_call, to_arrays

torch = pytest.importorskip("torch")

# The same session as torch-compile, told to compile longer: performance/device_runtimes.py holds it to the contract.
LONGER = ("torch-compile-max-autotune",)
# Built in, of packages installed here, of tests/plugins, and of plugins/runtimes.
RUNTIMES = list(dict.fromkeys((*(name for name in known_runtimes() if name not in LONGER), ADDED[GROUP], *OF_PLUGINS)))
TOLERANCE = 1e-5  # of all outputs, relative L2; weights rounded to float16 would miss it by far
CALLS = 20
STEPS = {
    "onnxruntime": {"export", "optimise"},
    "openvino": {"export", "optimise", "convert"},
    "aot-inductor": {"export", "compile"},
    "iree": {"export", "optimise", "convert", "compile"},
    "mnn": {"export", "optimise", "convert"},
    "ncnn": {"export", "convert"},
    "executorch": {"export", "convert"},
    "tvm": {"export", "optimise", "convert", "compile"},
}
QUICK = ("torch-eager", "torch-compile", "onnxruntime", "openvino", "mnn", ADDED[GROUP])
# What the tiny model does and a runtime cannot; its own tests hold it to the same with another model.
CANNOT = {"ncnn": "unsupported operator torch.argmax", "litert": "litert runs .tflite files"}


class Tiny(torch.nn.Module):
    """Integers and floats, positional and by keyword, nested; dropout; several outputs, one of them whole numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(50, 16)
        self.mix = torch.nn.Linear(16, 16)
        self.drop = torch.nn.Dropout(0.5)
        self.head = torch.nn.Linear(16, 8)

    def forward(self, ids: Any, relu: Any, *, extra: Any, flag: bool = False) -> Any:
        hidden = self.drop(torch.relu(self.mix(self.embed(ids))))
        if flag:
            hidden = hidden * relu
        scores = self.head(hidden) + extra["bias"][0]
        return scores, {"best": scores.argmax(-1), "mean": scores.mean(1)}, None


class Loaded(NamedTuple):
    """A runtime with the tiny model in it. `inputs`: as its kind is given them."""

    runtime: Runtime
    session: Session
    inputs: Any
    expected: dict[str, Any]
    steps: dict[str, float]


def captured() -> Captured:
    torch.manual_seed(0)
    args = (torch.randint(0, 50, (2, 12)), torch.rand(1) + 0.5)
    return Captured(Tiny(), args, {"extra": {"bias": (torch.randn(8),)}, "flag": True}, ("ids", "relu"))


@pytest.fixture(scope="module", autouse=True)
def installed(plugin_folder: Path) -> Iterator[None]:
    """tests/plugins, for all tests of this file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(plugin_folder))
        yield


@pytest.fixture(scope="module", autouse=True)
def quick_compiler() -> Iterator[None]:
    """Kernels without vectors, and AOTInductor's C++ around them, which takes longest, without optimisation."""
    config: Any = import_module("torch._inductor.config")
    with config.patch({"cpp.simdlen": 1, "aot_inductor.compile_wrapper_opt_level": "O0"}):
        yield


def marks(name: str) -> list[pytest.MarkDecorator]:
    """Tests of one runtime share its build, so they stay in one process."""
    return [pytest.mark.xdist_group(f"runtime {name}"), *([] if name in QUICK else [pytest.mark.long])]


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=marks(name)) for name in RUNTIMES],
)
def loaded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, installed: None
) -> Iterator[Loaded]:
    runtime, options = runtime_named(request.param), RuntimeOptions("cpu", "fp32", 1)
    reason = runtime.unavailable(options)
    if reason is not None:
        pytest.skip(reason)
    model, steps = captured(), CollectedSteps()
    model.module.eval()
    with torch.no_grad():
        expected = to_arrays(model.module(*model.args, **model.kwargs))
    model.module.train()
    if runtime.kind != ARTIFACT:
        session, inputs = runtime.load(model, options), model
    else:
        folder = tmp_path_factory.mktemp(runtime.name)
        read_operators_once()
        try:
            runtime.build(model, str(folder), options, steps)
        except Unsupported as error:
            if runtime.name not in CANNOT or CANNOT[runtime.name] not in error.text:
                raise
            pytest.skip(str(error))
        save_arrays(str(folder / "inputs.npz"), dict(flatten_call(model.args, model.kwargs, model.names)))
        session, inputs = runtime.load(ArtifactFolder(str(folder)), options), load_arrays(str(folder / "inputs.npz"))
    yield Loaded(runtime, session, inputs, expected, steps.seconds)
    session.close()


def relative_error(outputs: dict[str, Any], expected: dict[str, Any]) -> float:
    pairs = [(outputs[name].astype(np.float64), expected[name].astype(np.float64)) for name in expected]
    return max(float(np.linalg.norm(one - other) / np.linalg.norm(other)) for one, other in pairs)


def test_it_returns_what_eager_returns_under_the_same_names_and_in_eval_mode(loaded):
    session = loaded.session
    outputs = session.outputs(session.run(session.prepare(loaded.inputs)))
    assert list(outputs) == list(loaded.expected) == ["0", "1.best", "1.mean"]
    for name, array in loaded.expected.items():
        assert (outputs[name].shape, outputs[name].dtype) == (array.shape, array.dtype), name
    assert relative_error(outputs, loaded.expected) < TOLERANCE


def test_outputs_are_kept_when_it_is_called_again_with_other_inputs(loaded):
    session = loaded.session
    first = session.outputs(session.run(session.prepare(loaded.inputs)))
    other = session.run(session.prepare(changed(loaded.inputs)))
    assert relative_error(session.outputs(other), loaded.expected) > 0.01
    assert relative_error(first, loaded.expected) < TOLERANCE
    assert relative_error(session.outputs(session.run(session.prepare(loaded.inputs))), loaded.expected) < TOLERANCE


def changed(inputs: Any) -> Any:
    if isinstance(inputs, Captured):
        return inputs._replace(args=(inputs.args[0], inputs.args[1] * 2))
    return {**inputs, "relu": inputs["relu"] * 2}


def test_calls_leave_the_inputs_as_they_were(loaded):
    prepared = loaded.session.prepare(loaded.inputs)
    loaded.session.run(prepared)
    assert not loaded.session.inputs_changed(prepared, loaded.inputs)
    assert not loaded.session.consumes_inputs


def test_it_tells_threads_wait_policy_precision_and_provider(loaded):
    session = loaded.session
    assert session.details["threads"] == 1
    assert session.details["wait_policy"]
    assert session.precision == "fp32"
    assert session.provider
    assert loaded.runtime.version()[0].isdigit()
    assert loaded.runtime.versions()


def test_its_own_clock_says_less_than_ours_around_the_same_calls(loaded):
    if not isinstance(loaded.session, TimesItself):
        pytest.skip(f"{loaded.runtime.name} has no clock of its own")
    inside, around = times_in_runtime(loaded.session, loaded.session.prepare(loaded.inputs))
    assert len(inside) == len(around) > 1
    assert all(0 < own < 1 for own in inside)
    assert all(more > 0 for more in around)


def test_each_step_of_its_build_is_timed(loaded):
    assert set(loaded.steps) == STEPS.get(loaded.runtime.name, set())
    assert all(seconds > 0 for seconds in loaded.steps.values())
    assert loaded.session.first_run_builds == (loaded.runtime.name == "torch-compile")


def test_another_stream_answers_the_same(loaded):
    stream = loaded.session.new_stream()
    outputs = stream.outputs(stream.run(stream.prepare(loaded.inputs)))
    stream.close()
    assert relative_error(outputs, loaded.expected) < TOLERANCE
    again = loaded.session.run(loaded.session.prepare(loaded.inputs))
    assert relative_error(loaded.session.outputs(again), loaded.expected) < TOLERANCE


def test_its_profile_names_operators_with_their_times(loaded):
    found = loaded.session.profile(loaded.session.prepare(loaded.inputs), CALLS)
    assert len(found) >= 3
    assert all(row.op and row.seconds_per_call >= 0 and row.calls > 0 for row in found)
    assert 0 < sum(row.seconds_per_call for row in found) < 1
    assert [row.seconds_per_call for row in found] == sorted((row.seconds_per_call for row in found), reverse=True)
    # AOTInductor's packages call products without a mark: they are in the rest of a call. MNN makes convolutions of them.
    products = ("mm", "matmul", "gemm", "fullyconnected", "linear", "convolution", "fused kernels and the runtime")
    assert any(word in row.op.lower() for row in found for word in products)


@pytest.mark.parametrize("name", RUNTIMES)
def test_a_device_that_is_not_there_is_told_before_anything_is_tried(name):
    reason = runtime_named(name).unavailable(RuntimeOptions("nosuch:3"))
    assert reason is not None
    assert "nosuch" in reason


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_what_only_runs_an_artifact_needs_no_torch(name):
    code = (
        "import sys; from benchmodels.runtimes.base import ArtifactFolder, RuntimeOptions, Unsupported\n"
        "from benchmodels.runtimes.registry import runtime_named\n"
        f"runtime = runtime_named({name!r})\n"
        "try: runtime.load(ArtifactFolder(file='/nonexistent.onnx'), RuntimeOptions())\n"
        "except Unsupported as error: print(error.stage, error.kind)\n"
        "sys.exit(any(name in sys.modules for name in ('torch', 'openvino_telemetry')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("load error\n", 0), done.stderr


class Eigenvalues(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.linalg.eigvalsh(x)


class FromNothing(torch.nn.Module):
    def forward(self, count: int) -> Any:
        return torch.ones(3) * count


@pytest.mark.parametrize(
    ("module", "inputs", "operator", "text"),
    [
        (Eigenvalues(), (torch.eye(3),), "aten::_linalg_eigh", "unsupported operator aten::_linalg_eigh"),
        (FromNothing(), (3,), None, "no tensor among its inputs"),
    ],
    ids=["operator", "constant"],
)
def test_an_export_that_cannot_be_done_is_a_result_with_its_reason(tmp_path: Path, module, inputs, operator, text):
    with pytest.raises(Unsupported, match=text) as failure:
        runtime_named("onnxruntime").build(
            Captured(module, inputs, {}), str(tmp_path), RuntimeOptions(), CollectedSteps()
        )
    assert (failure.value.stage, failure.value.kind, failure.value.operator) == ("export", "unsupported", operator)


class Passing(torch.nn.Module):
    """An input that is returned as it is, an output that is there twice, an input that is never used, a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.register_buffer("three", torch.full((3,), 3.0))

    def forward(self, linear: Any, unused: Any) -> Any:
        made = self.layer(linear)
        return made, made, linear, self.three


@pytest.mark.parametrize("name", ["onnxruntime"])
def test_outputs_that_are_inputs_constants_or_alike_keep_their_places(tmp_path: Path, name):
    x = torch.arange(8.0).reshape(2, 4)
    model = Captured(Passing(), (x, torch.zeros(5)), {}, ("linear", "unused"))
    with torch.no_grad():
        expected = to_arrays(model.module(*model.args))
    runtime = runtime_named(name)
    runtime.build(model, str(tmp_path), RuntimeOptions(), CollectedSteps())
    session = runtime.load(ArtifactFolder(str(tmp_path)), RuntimeOptions())
    arrays = {name: tensor.numpy() for name, tensor in flatten_call(model.args, model.kwargs, model.names)}
    outputs = session.outputs(session.run(session.prepare(arrays)))
    assert list(outputs) == list(expected)
    for place, array in expected.items():
        np.testing.assert_allclose(outputs[place], array, rtol=1e-6, err_msg=place)
    session.close()
