"""The reference in float64, and what it says of outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from benchmodels.check.reference import call, judged, reference_of  # noqa: E402


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
    assert (said.ok, said.claimed) == (True, False)
    assert "NaN in the model itself, so nothing is claimed" in said.detail


def test_a_model_that_is_nan_in_float64_alone_is_held_against_float32() -> None:
    """Such as where a mask of a very low number is added twice."""

    class Masked(nn.Module):
        def forward(self, x: Any) -> Any:
            mask = torch.full_like(x, -1e308 if x.dtype == torch.float64 else -1e38)
            return torch.softmax(x + mask + mask, -1)

    x = torch.ones(1, 4)
    found = reference_of(Masked().eval(), (x,), {})
    assert (found.label, found.note) == ("float32 eager", "in float64 it returns NaN")
    wrong = judged([{"output": np.zeros((1, 4), np.float32)}], found, "fp32")
    assert not wrong.ok


def test_inputs_that_a_model_changes_are_copies() -> None:
    x = torch.ones(2, 4)
    assert reference_of(Times("mutates"), (x,), {}).varies is None
    assert torch.equal(x, torch.ones(2, 4))


def test_float64_is_not_tried_without_memory_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmodels.check.reference.available_host_bytes", lambda: 100)
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


class Keeps(nn.Module):
    """Calls that depend on those before them; after some dozens they no longer differ."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.where = where
        self.calls = 0
        self.kept: Any = None
        self.register_buffer("state", torch.zeros(2, 3))

    def forward(self, x: Any) -> Any:
        y = self.layer(x)
        if self.where == "calls":
            self.calls += 1
            return y if self.calls < 10 else 2 * y
        if self.where == "kept":
            self.kept = y if self.kept is None else self.kept / 2 + y
            return self.kept
        self.state.div_(2).add_(y)
        return self.state.clone()


@pytest.mark.parametrize("where", ["state", "kept", "calls"])
def test_a_model_that_keeps_something_between_calls_is_not_called_wrong(where: str) -> None:
    model, x = Keeps(where), torch.randn(2, 4)
    first = call(model, (x,), {})
    for _ in range(60):
        last = call(model, (x,), {})
    found = reference_of(model, (x,), {})
    assert (found.varies, found.keeps) == (None, where)  # two calls no longer differ
    said = judged([first, last], found, "fp32")
    assert said.ok
    assert f"its calls change its '{where}', so nothing is claimed" in said.detail
    assert said.figures["varies"] == pytest.approx(0.5, rel=1e-3)
    wrong = {"output": last["output"] + 1}  # each time the same: that is not what it keeps
    assert not judged([wrong, wrong], found, "fp32").ok


def test_a_model_that_only_counts_its_calls_is_checked() -> None:
    found = reference()
    assert found.keeps == "calls"
    right = {"output": found.outputs["output"].astype(np.float32)}
    assert "varies" not in judged([right, right], found, "fp32").figures


def test_a_model_whose_output_grows_with_each_call_is_not_called_wrong() -> None:
    class Grows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[Any] = []

        def forward(self, x: Any) -> Any:
            self.seen.append(x)
            return torch.cat(self.seen)

    model, x = Grows(), torch.randn(2, 4)
    calls = [call(model, (x,), {}) for _ in range(2)]
    found = reference_of(model, (x,), {})
    assert judged(calls, found, "fp32").ok
    assert not judged([{"output": np.full((2, 4), np.nan)}], found, "fp32").ok


class Otherwise(nn.Module):
    """In float64 it computes something else."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.what = what

    def forward(self, x: Any) -> Any:
        y = self.layer(x)
        if self.what == "seeded":
            with torch.random.fork_rng():
                torch.manual_seed(0)
                return y * torch.randn(200, 3)
        if self.what == "indices":
            return (y * 1e9).long() % 7
        return y[(x * 0.1 * 3 - x * 0.3).sum(-1) > 0]


@pytest.mark.parametrize("what", ["seeded", "indices", "sizes"])
def test_where_float64_is_another_computation_no_answer_passes_for_want_of_a_reference(what: str) -> None:
    torch.manual_seed(0)
    model, x = Otherwise(what), torch.randn(200, 4)
    found = reference_of(model, (x,), {})
    assert found.label == "float32 eager"
    assert "in float64 it computes something else" in found.note
    eager = call(model, (x,), {})
    assert judged([eager], found, "fp32").ok
    assert not judged([{"output": np.zeros_like(eager["output"])}], found, "fp32").ok


def test_an_output_that_is_nothing_but_rounding_keeps_its_reference() -> None:
    class Nothing(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.softmax(-1).sum(-1) - 1, x * 2

    found = reference_of(Nothing(), (torch.randn(64, 50),), {})
    assert found.label == "float64 eager"
    right = {"0": np.zeros(64, np.float32), "1": found.outputs["1"].astype(np.float32)}
    assert judged([right], found, "fp32").ok
    assert not judged([{**right, "0": np.full(64, 0.01, np.float32)}], found, "fp32").ok


def test_a_model_that_loses_much_in_bfloat16_is_still_held_against_float64() -> None:
    class Cancels(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(64, 8)

        def forward(self, x: Any) -> Any:
            return self.layer(x + 1000) - self.layer(x + 999)

    torch.manual_seed(0)
    model = Cancels().to(torch.bfloat16)
    found = reference_of(model, (torch.randn(4, 64, dtype=torch.bfloat16),), {})
    assert found.own[0].relative_l2 > 0.25
    assert found.label == "float64 eager"


def test_the_own_error_of_a_model_under_autocast_is_the_one_it_has_there() -> None:
    torch.manual_seed(0)
    module, args = Times(), (torch.randn(2, 4),)
    plain = reference_of(module, args, {})
    cast = reference_of(module, args, {}, lambda: torch.autocast("cpu", dtype=torch.bfloat16))
    assert cast.label == plain.label == "float64 eager"
    assert np.array_equal(next(iter(cast.outputs.values())), next(iter(plain.outputs.values())))
    assert (plain.own[0].relative_l2 or 0) < 1e-6 < 1e-4 < (cast.own[0].relative_l2 or 0)


def test_a_model_that_runs_only_under_autocast_has_a_reference() -> None:
    """Half of it was converted: without autocast, its layers do not fit together."""
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3).bfloat16())
    args = (torch.randn(2, 4),)
    with pytest.raises(RuntimeError):
        reference_of(module, args, {})
    assert reference_of(module, args, {}, lambda: torch.autocast("cpu", dtype=torch.bfloat16)).own
