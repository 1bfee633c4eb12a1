"""A real model with one layer made slower: the operator that is named is the right one, with torch's own numbers."""

from __future__ import annotations

from typing import Any

import builders
import pytest
import torch
from builders import launch, measurement
from comparable_runs import benchmark

from benchmodels.measure.model_measurement import operators
from benchmodels.runtimes.base import Inputs
from benchmodels.runtimes.parts.torch_session import profiled
from benchwright.analysis.operator_times import explain_operators
from benchwright.core.run import Result

CALLS = 5


class Net(torch.nn.Module):
    """Two linear layers; `sines` between them."""

    def __init__(self, width: int, sines: int = 0) -> None:
        super().__init__()
        self.first, self.second, self.sines = torch.nn.Linear(512, width), torch.nn.Linear(width, 512), sines

    def forward(self, x: torch.Tensor) -> Any:
        y = torch.relu(self.first(x))
        for _ in range(self.sines):
            y = torch.sin(y)
        return self.second(y)


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What torch's profiler recorded, each time it was used."""
    made: list[Any] = []
    real = torch.profiler.profile

    def keeping(*args: Any, **kwargs: Any) -> Any:
        made.append(real(*args, **kwargs))
        return made[-1]

    monkeypatch.setattr(torch.profiler, "profile", keeping)
    return made


def profile_of(model: Net, launches: int = 3) -> Result:
    """As benchmodels profiles and reports it, and benchwright records it."""
    inputs = Inputs((torch.randn(256, 512),), {})
    made = []
    with torch.inference_mode():
        for _ in range(launches):
            found = operators(profiled(lambda given: model(*given.args), [inputs] * (CALLS + 1), CALLS, "cpu"))
            labelled = [({"op": each.op, "calls": f"{each.calls:g}"}, each.seconds) for each in found]
            figures = [
                measurement(seconds, metric="op.time", unit="s", source="model", labels=labels)
                for labels, seconds in labelled
            ]
            made.append(launch(*figures))
    return builders.result(benchmark("net"), *made)


def by_hand(trace: Any, op: str) -> float:
    """Seconds of one call, from torch's own table."""
    (event,) = (event for event in trace.key_averages() if event.key == op)
    return float(event.self_cpu_time_total) / 1e6 / CALLS


def test_an_activation_that_was_added_is_named_with_its_number_of_runs(traces: list[Any]) -> None:
    before, after = profile_of(Net(256)), profile_of(Net(256, sines=3))
    found = explain_operators(before, after, 1.0)
    assert found is not None
    (sine,) = (each for each in found.operators if each.op == "aten::sin")
    assert sine.calls == ("0", "3")
    assert sine.clear is True
    assert sine.treatment_s == pytest.approx(sorted(by_hand(trace, "aten::sin") for trace in traces[3:])[1])
    assert sine.difference_s == pytest.approx(sine.treatment_s)
    linear = next(each for each in found.operators if each.op == "aten::addmm")
    assert linear.calls == ("2", "2")
    assert linear.control_s == pytest.approx(sorted(by_hand(trace, "aten::addmm") for trace in traces[:3])[1])


def test_a_wider_layer_is_named_by_its_operator_and_accounts_for_nearly_everything(traces: list[Any]) -> None:
    """32 times the work in the linear layers: no load of the machine hides that."""
    before, after = profile_of(Net(64)), profile_of(Net(2048))
    found = explain_operators(before, after, None)
    assert found is not None
    worst = found.operators[0]
    assert worst.op == "aten::addmm"
    assert worst.difference_s > 0.5 * found.explained_s
    assert worst.treatment_s == pytest.approx(sorted(by_hand(trace, "aten::addmm") for trace in traces[3:])[1])
