"""Models measured in processes of their own, as the agent starts them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from forked_python import ForkedPython
from measured_models import Models
from onnx_models import failing, looked_up

pytest.importorskip("torch")

SCRIPT = """
import atexit
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(32, 64)
        self.second = nn.Linear(64, 8)

    def forward(self, x, *, scale):
        x.mul_(1)
        return {"out": self.second(torch.relu(self.first(x))) * scale}

atexit.register(print, "the script's end")
torch.manual_seed(3)
net = Net()
print("called", flush=True)
net(torch.randn(4, 32), scale=2.0)
print("went on", flush=True)
"""


@pytest.fixture
def models(tmp_path: Path) -> Models:
    return Models(tmp_path)


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory, forked_python: ForkedPython) -> Any:
    """A script, its model's identity, and a folder of builds that tests share."""
    models = Models(tmp_path_factory.mktemp("net"), forked_python)
    path = models.script(SCRIPT)
    (identity,) = {event["identity"] for event in models.run(path, mode="discover").all("model")}
    return models, path, identity


def test_a_module_is_measured_where_its_script_calls_it(net: Any) -> None:
    models, path, identity = net
    told = models.run(path, identity=identity, streams=2, precision="bf16")
    assert told.code == 0
    assert told.output == "called\n", "the script goes no further, and what it left for its end is not run"
    assert told.measured_calls == 20
    assert {event["items"] for event in told.all("steps")} == {1}, "the loop counts calls"
    assert told.one("items")["items"] is None, "nothing says that the first dimension is a batch"
    assert told.one("check")["ok"]
    assert 1e-4 < told.one("check")["figures"]["relative_l2"] < 5e-2
    assert told.one("check")["figures"]["reference"] == "float64 eager"
    assert told.one("runtime")["precision"] == "bf16"
    assert told.one("runtime")["threads"] >= 1
    flops = 2 * (32 * 64 + 64 * 8)
    assert told.one("give")["values"]["flops_per_call.bf16"] == 4 * flops
    assert told.figure("memory.host") > 50e6
    assert told.figure("time.script") > 0
    assert told.one("probe_end")["how"] == "end"


@pytest.mark.long  # tests/unit/test_benchmark_model.py makes builds and uses them again, too
def test_a_build_is_made_once_and_measured_without_torch(net: Any) -> None:
    pytest.importorskip("onnxruntime")
    models, path, identity = net
    differs = [[["x", 0]]]  # another call has another number of rows
    first = models.run(path, identity=identity, runtime="onnxruntime", rebuild="always", varying=differs)
    assert first.one("check")["ok"], first.errors
    assert first.steps == {"reference": False, "export": False, "optimise": False}
    assert first.figure("time.build") == pytest.approx(first.figure("build.export") + first.figure("build.optimise"))
    started = models.start(path, identity=identity, runtime="onnxruntime", env={"PYTHONPROFILEIMPORTTIME": "1"})
    again = models.finish(started)
    assert again.steps == {"reference": True, "export": True, "optimise": True}
    assert again.output == "", "the script was not run"
    assert again.one("check")["ok"]
    assert " torch\n" not in again.errors
    assert again.all("measured", metric="time.build") == []
    assert again.figure("time.to_first_result") > first.figure("time.build"), "it tells what it takes from nothing"
    assert again.one("give")["values"] == first.one("give")["values"]
    assert again.one("items")["items"] == first.one("items")["items"] == 4, "rows that are computed by themselves"
    assert "flops_per_item.fp32" in again.one("give")["values"]


def test_a_model_that_is_not_called_is_told(net: Any) -> None:
    models, path, _ = net
    told = models.run(path, identity="0123456789abcdef")
    assert told.one("failure")["kind"] == "not_found"
    assert told.output.startswith("called\nwent on\n")


@pytest.mark.parametrize(
    ("settings", "kind", "words"),
    [
        ({"runtime": "onnxrutime"}, "unavailable", "did you mean 'onnxruntime'"),
        ({"runtime": "onnxruntime", "device": "cuda:7"}, "unavailable", "CUDAExecutionProvider"),
        (
            {"runtime": "torch-compile", "precision": "int8-dynamic"},
            "unsupported",
            "torch-compile does not support int8-dynamic",
        ),
        ({"file": "model.txt"}, "unsupported", "is not a model file"),
        ({"file": "model.onnx"}, "unavailable", "torch-eager does not take .onnx files"),
        ({"file": "absent.onnx", "runtime": "onnxruntime"}, "not_found", "no such file"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(models: Models, settings: Any, kind: str, words: str) -> None:
    told = models.run(Path("absent.py"), identity="0123456789abcdef", **settings)
    assert told.code == 0
    assert told.one("failure")["kind"] == kind
    assert words in told.one("failure")["text"]


def test_a_file_is_measured_on_inputs_made_for_it(models: Models) -> None:
    pytest.importorskip("onnxruntime")
    path = looked_up(models.folder)
    told = models.run(
        file=str(path), runtime="onnxruntime", shapes={"ids": [3, 6]}, env={"PYTHONPROFILEIMPORTTIME": "1"}
    )
    assert told.one("check")["ok"]
    assert told.one("check")["figures"]["reference"] == "onnxruntime unoptimised float32"
    assert told.measured_calls == 20
    assert told.one("model")["class"] == "Tiny"
    assert told.one("model")["parameters"] == 11 * 8 + 8 * 4
    assert {each["name"]: each["shape"] for each in told.one("model")["inputs"]} == {"ids": [3, 6], "mask": [6, 4]}
    assert (told.one("items")["items"], told.one("items")["items_from"]) == (3, "dimension 'batch' of ids in the file")
    assert told.one("give")["values"]["flops_per_item.fp32"] == 2 * 6 * 8 * 4
    assert " torch\n" not in told.errors
    refused = models.run(file=str(path), runtime="onnxruntime")
    assert "give --shape ids=1x6" in refused.one("failure")["text"]


def test_an_operator_that_a_runtime_does_not_know_is_named(models: Models) -> None:
    pytest.importorskip("onnxruntime")
    told = models.run(file=str(failing(models.folder)), runtime="onnxruntime")
    assert told.code == 0
    assert "NoSuchOperator" in str(told.one("failure"))


def test_a_profile_tells_the_delay_of_each_operator(models: Models) -> None:
    pytest.importorskip("onnxruntime")
    told = models.run(file=str(looked_up(models.folder)), runtime="onnxruntime", shapes={"ids": [3, 6]}, profile=True)
    operators = {event["labels"]["op"]: event["values"] for event in told.all("measured", metric="op.time")}
    assert "MatMul" in operators
    assert all(value > 0 for values in operators.values() for value in values)
    assert told.all("steps") == []


def test_numpy_that_is_missing_is_not_the_scripts_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmodels.measure import measure
    from benchmodels.runtimes.base import RuntimeOptions, Unsupported
    from benchmodels.runtimes.torch_eager import TorchEager

    monkeypatch.setattr(TorchEager, "unavailable", lambda self, options: None)
    monkeypatch.setattr(measure, "is_importable", lambda name: name != "numpy")
    with pytest.raises(Unsupported, match=f"numpy not installed: {sys.executable} -m pip install numpy") as caught:
        measure.refuse_without(TorchEager(), RuntimeOptions())
    assert caught.value.stage == "load"
