"""The reference in float64, and what it says of outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from benchprobe.models.reference import call, judged, reference_of  # noqa: E402


class Times(nn.Module):
    """A layer, and a way to go wrong."""

    def __init__(self, way: str = "") -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.way = way
        self.calls = 0

    def forward(self, x: Any) -> Any:
        self.calls += 1
        y = self.layer(x)
        if self.way == "float32 only":
            return y @ torch.ones(3, 3, dtype=torch.float32)
        if self.way == "makes tensors":
            return y @ torch.ones(3, 3)
        if self.way == "random":
            return y + torch.rand(3)
        if self.way == "dropout":
            return nn.functional.dropout(y, 0.5, training=True)
        if self.way == "nan":
            return y / torch.zeros(3) * 0
        if self.way == "mutates":
            x.add_(1)
        return y


def reference(way: str = "") -> Any:
    torch.manual_seed(0)
    return reference_of(Times(way), (torch.randn(2, 4),), {})


def test_the_reference_is_in_float64_and_leaves_the_model_as_it_was() -> None:
    model = Times()
    model.train()
    x = torch.randn(2, 4, requires_grad=True) * 1  # no leaf: such tensors cannot simply be copied
    found = reference_of(model, (x,), {})
    assert found.label == "float64 eager"
    assert found.outputs["output"].dtype == np.float64
    assert found.own[0].relative_l2 < 1e-6
    assert found.varies is None
    assert model.layer.weight.dtype == torch.float32
    assert model.training
    assert torch.get_default_dtype() == torch.float32
    exact = x.detach().double() @ model.layer.weight.detach().double().T + model.layer.bias.detach().double()
    assert np.allclose(found.outputs["output"], exact.numpy(), rtol=1e-14)


def test_tensors_that_a_model_makes_are_float64_as_well() -> None:
    assert reference("makes tensors").label == "float64 eager"


def test_a_model_that_wants_float32_gets_it_and_is_labelled() -> None:
    found = reference("float32 only")
    assert found.label == "float32 eager"
    assert "float64 failed: RuntimeError" in found.note


def test_a_model_in_bfloat16_is_held_against_float64() -> None:
    model = nn.Linear(64, 8).to(torch.bfloat16)
    found = reference_of(model, (torch.randn(2, 64, dtype=torch.bfloat16),), {})
    assert found.label == "float64 eager"
    assert 1e-4 < found.own[0].relative_l2 < 1e-1


@pytest.mark.parametrize("way", ["random", "dropout"])
def test_of_a_model_that_varies_nothing_is_claimed(way: str) -> None:
    found = reference(way)
    assert found.varies > 1e-2
    said = judged([{"output": np.random.default_rng(0).standard_normal((2, 3))}], found, "fp32")
    assert said.ok
    assert "non-deterministic" in said.detail
    assert not judged([{"output": np.full((2, 3), np.nan)}], found, "fp32").ok
    assert not judged([{"output": np.zeros((3, 2))}], found, "fp32").ok


def test_a_runtime_that_varies_although_the_model_does_not_is_wrong() -> None:
    found = reference()
    right = {"output": found.outputs["output"].astype(np.float32)}
    said = judged([right, {"output": right["output"] + 1}], found, "fp32")
    assert not said.ok
    assert "in call 2" in said.detail


def test_a_model_that_returns_nan_itself_is_said_to() -> None:
    found = reference("nan")
    assert found.varies is None
    said = judged([{"output": np.full((2, 3), np.nan)}], found, "fp32")
    assert not said.ok
    assert "the model itself returns NaN" in said.detail


def test_inputs_that_a_model_changes_are_copies() -> None:
    x = torch.ones(2, 4)
    assert reference_of(Times("mutates"), (x,), {}).varies is None
    assert torch.equal(x, torch.ones(2, 4))


def test_float64_is_not_tried_without_memory_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchprobe.models.reference.available_host_bytes", lambda: 100)
    found = reference()
    assert found.label == "float32 eager"
    assert "MemoryError" in found.note


def test_nested_inputs_and_outputs_are_cast() -> None:
    class Nested(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, *, batch: Any) -> Any:
            return {"out": (self.layer(batch["x"][0]), batch["ids"] + 1)}

    batch = {"x": [torch.ones(1, 2)], "ids": torch.arange(3)}
    found = reference_of(Nested(), (), {"batch": batch})
    assert [array.dtype for array in found.outputs.values()] == [np.float64, np.int64]
    assert call(Nested(), (), {"batch": batch})["out.0"].dtype == np.float32
