"""ExecuTorch: precisions that are what they say, refusals that name the operator, outputs in their places, its own threads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmodels.runtimes.base import (
    FP16,
    FP32,
    INT8_DYNAMIC,
    ArtifactFolder,
    Captured,
    CollectedSteps,
    RuntimeOptions,
    Unsupported,
)
from benchmodels.runtimes.executorch import Executorch, ExecutorchSession, refusal
from benchmodels.tensors import flatten_call, to_arrays

torch = pytest.importorskip("torch")

LOG = """[kernel_ops_util.cpp:394] Check failed (in.dim() == 3 || in.dim() == 4): Expect input tensor to be 3-D or 4-D
[op_convolution.cpp:363] Check failed (check_convolution_args( in, weight)):\x20
[method.cpp:1483] KernelCall failed at instruction 0:0 in operator aten::convolution.out: 0x12
"""


def test_the_log_tells_which_operator_refused_and_why():
    made = refusal(LOG, RuntimeError("method->execute() failed with error 0x12"))
    assert (made.stage, made.kind, made.operator) == ("first_run", "unsupported", "aten::convolution")
    assert made.text == "unsupported operator aten::convolution: Expect input tensor to be 3-D or 4-D"


def test_without_an_operator_in_the_log_the_error_is_told_as_it_is():
    known = Unsupported("load", "no such file", kind="error")
    assert refusal("", known) is known
    made = refusal("[threadpool.cpp:66] Resetting threadpool", RuntimeError("failed with error 0x12"))
    assert (made.text, made.kind, made.operator) == ("failed with error 0x12", "error", None)


@pytest.fixture
def package() -> None:
    pytest.importorskip("executorch")


needs_package = [
    pytest.mark.usefixtures("package"),
    pytest.mark.long,
    pytest.mark.xdist_group("runtime executorch"),
]


def marked(test: Any) -> Any:
    for mark in needs_package:
        test = mark(test)
    return test


def built(module: Any, args: tuple[Any, ...], folder: Path, precision: str = FP32) -> ExecutorchSession:
    torch.manual_seed(0)
    options = RuntimeOptions(precision=precision)
    Executorch().build(Captured(module.eval(), args, {}), str(folder), options, CollectedSteps())
    session = Executorch().load(ArtifactFolder(str(folder)), options)
    assert isinstance(session, ExecutorchSession)
    return session


def arrays(args: tuple[Any, ...]) -> dict[str, Any]:
    return {name: tensor.numpy() for name, tensor in flatten_call(args, {})}


@marked
@pytest.mark.parametrize(
    ("precision", "kernel", "least", "most"),
    [(FP32, "(NC, F32)", 0, 1e-6), (FP16, "(NC, F16)", 1e-5, 1e-2), (INT8_DYNAMIC, "QC8W", 1e-4, 5e-2)],
)
def test_a_precision_is_that_of_the_kernel_that_runs(tmp_path: Path, precision, kernel, least, most):
    torch.manual_seed(0)
    module, args = torch.nn.Linear(64, 64), (torch.randn(8, 64),)
    session = built(module, args, tmp_path, precision)
    prepared = session.prepare(arrays(args))
    (output,) = session.outputs(session.run(prepared)).values()
    with torch.no_grad():
        expected = module.double()(args[0].double()).numpy()
    assert least <= np.linalg.norm(output - expected) / np.linalg.norm(expected) < most
    assert session.precision == precision
    assert any(kernel in row.op for row in session.profile(prepared, 5))


class Sorted(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return x.sort(1)[0]


@marked
@pytest.mark.parametrize(
    ("module", "shape", "stage", "operator", "text"),
    [
        (Sorted(), (4, 8), "convert", "aten::sort", "neither XNNPACK nor a portable kernel supports it"),
        (torch.nn.Conv3d(3, 4, 3), (1, 3, 8, 8, 8), "first_run", "aten::convolution", "3-D or 4-D"),
    ],
    ids=["no kernel", "a kernel that refuses"],
)
def test_what_it_cannot_run_is_told_by_the_build_with_its_operator(tmp_path, module, shape, stage, operator, text):
    with pytest.raises(Unsupported, match=text) as failure:
        built(module, (torch.randn(shape),), tmp_path)
    assert (failure.value.stage, failure.value.kind, failure.value.operator) == (stage, "unsupported", operator)


class Changing(torch.nn.Module):
    """Changes an input, never uses another, returns one output twice, an input and a constant; looks up a table."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(10, 4)
        self.layer = torch.nn.Linear(4, 4)
        self.register_buffer("three", torch.full((3,), 3.0))

    def forward(self, x: Any, ids: Any, unused: Any) -> Any:
        x.mul_(0.5)
        made = self.layer(x) + self.table(ids)
        return made, made, x, ids, self.three


@marked
def test_outputs_keep_their_places_and_inputs_their_values(tmp_path: Path):
    module = Changing().eval()
    args = (torch.arange(8.0).reshape(2, 4), torch.tensor([3, 1]), torch.zeros(5))
    with torch.no_grad():
        expected = to_arrays(module(args[0].clone(), *args[1:]))
    session = built(module, args, tmp_path)
    prepared = session.prepare(arrays(args))
    for _ in range(2):
        outputs = session.outputs(session.run(prepared))
        assert list(outputs) == list(expected)
        for place, array in expected.items():
            np.testing.assert_allclose(outputs[place], array, rtol=1e-6, err_msg=place)
    assert torch.equal(prepared[0], args[0])
    assert session.details["other_operators"] == ["aten::copy", "aten::embedding"]
    assert session.details["delegated_nodes"] >= 3  # mul, linear, add
    assert session.provider == "XNNPACK"


@marked
def test_inputs_and_weights_of_another_layout_are_taken_and_left_as_they_are(tmp_path: Path):
    module = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last).eval()
    image = torch.randn(1, 3, 8, 8)
    with torch.no_grad():
        expected = module(image).numpy()
    session = built(module, (image.contiguous(memory_format=torch.channels_last),), tmp_path)
    (output,) = session.outputs(session.run(session.prepare(arrays((image,))))).values()
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-5)
    assert not module.weight.is_contiguous()


@marked
def test_its_pool_has_the_threads_asked_for_and_loading_takes_no_exporter(tmp_path: Path):
    built(torch.nn.Linear(512, 512), (torch.randn(64, 512),), tmp_path)
    code = (
        "import os, sys; from benchmodels.runtimes.base import ArtifactFolder, RuntimeOptions\n"
        "from benchmodels.runtimes.registry import runtime_named\n"
        "import numpy\n"
        f"load = lambda: runtime_named('executorch').load(ArtifactFolder({str(tmp_path)!r}), RuntimeOptions(threads=3))\n"
        "import torch; before = len(os.listdir('/proc/self/task')); session = load()\n"
        "session.run(session.prepare({'arg0': numpy.zeros((64, 512), 'float32')}))\n"
        "print(session.details['threads'], len(os.listdir('/proc/self/task')) - before)\n"
        "sys.exit('executorch.exir' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("3 2\n", 0), done.stderr
