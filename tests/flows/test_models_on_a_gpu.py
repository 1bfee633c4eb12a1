"""Models of scripts on a real GPU; skipped where there is none. On a machine with one: pytest tests/flows/test_models_on_a_gpu.py."""

from __future__ import annotations

from typing import Any

import pytest
from command_line import CommandLine

import benchwright
from benchwright.core.run import Result
from benchwright.core.status import Status

pytestmark = pytest.mark.xdist_group("models")

ON_CUDA = """
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(*(torch.nn.Conv2d(64, 64, 3, padding=1) for _ in range(4))).eval()
x = torch.randn(8, 64, 56, 56)
with torch.inference_mode():
    net(x[:, :, :8, :8])  # tried on the processor, once
    net.cuda()
    for _ in range(3):
        net(x.cuda())
"""


@pytest.fixture
def on_gpu(bw: CommandLine) -> CommandLine:
    torch: Any = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU here")
    (bw.cwd / "net.py").write_text(ON_CUDA)
    return bw


def results(bw: CommandLine, *options: str) -> dict[str, Result]:
    """By the device that each was measured on."""
    bw("run", "net.py", "--stop", "20", "--warmup", "2", *options)
    run = benchwright.load("last", base=bw.base)
    return {result.launches[0].facts["runtime"]["device"]: result for result in run.results}


def test_a_model_is_measured_on_the_gpu_that_its_script_calls_it_on(on_gpu: CommandLine) -> None:
    found = results(on_gpu)
    assert set(found) == {"cpu", "cuda"}, "the other shape is called on the processor only"
    assert all(each.status is Status.OK and not each.notes for each in found.values()), found
    (asked,) = results(on_gpu, "--device", "cpu").values()
    assert asked.launches[0].facts["runtime"]["device"] == "cpu"


def test_tf32_is_told_of_a_model_that_the_script_has_on_the_gpu(on_gpu: CommandLine) -> None:
    """Its own error is computed without TF32, so TF32 shows."""
    (launch,) = results(on_gpu)["cuda"].launches
    assert launch.facts["check"]["ok"]
    assert launch.facts["runtime"]["details"]["tf32"] == "convolutions"
