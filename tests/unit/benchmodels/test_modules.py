"""Modules measured by torch itself, in this process: those that behave, and those that do not."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from benchmodels.measure.failure_reports import failures_reported  # noqa: E402
from benchmodels.measure.jobs import MeasureJob  # noqa: E402
from benchmodels.reports import Reports  # noqa: E402
from benchmodels.runtimes.base import Captured, RuntimeOptions  # noqa: E402
from benchmodels.runtimes.registry import runtime_named  # noqa: E402
from benchmodels.settings import ModelSettings  # noqa: E402

Event = dict[str, Any]


class Net(nn.Module):
    def __init__(self, way: str = "") -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.way = way
        self.gradients: set[bool] = set()
        self.modes: set[bool] = set()

    def forward(self, x: Any, cache: Any = None) -> Any:
        self.gradients.add(torch.is_grad_enabled())
        self.modes.add(self.training)
        y = self.layer(x)
        if self.way == "nan":
            return y / 0 * 0
        if self.way == "random":
            return y + torch.rand(4)
        if self.way == "no memory":
            return torch.empty(1 << 60, dtype=torch.uint8)
        if self.way == "exit":
            raise SystemExit(5)
        if self.way == "in place":
            x.add_(1)
        if self.way == "cache":
            cache.seen.append(x)
            return torch.cat(cache.seen).sum(0)
        return y


class Cache:
    def __init__(self) -> None:
        self.seen: list[Any] = []


@pytest.fixture(autouse=True)
def threads() -> Any:
    """Measuring sets torch's threads."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def measured(module: Any, *args: Any, **settings: Any) -> list[Event]:
    events: list[Event] = []
    reports = Reports(events.append)
    asked = ModelSettings(mode="measure", options=RuntimeOptions(threads=1), **settings)
    captured = Captured(module, args or (torch.ones(2, 4),), {}, ("x", "cache")[: len(args) or 1])
    job = MeasureJob(asked, runtime_named("torch-eager"), reports)
    with failures_reported(reports):
        job.measure_module(captured)
    return events


def one(events: list[Event], kind: str) -> Event:
    (found,) = [event for event in events if event["event"] == kind]
    return found


def test_a_module_is_called_in_eval_mode_without_gradients() -> None:
    module = Net().train()
    events = measured(module)
    assert one(events, "check")["ok"]
    assert module.gradients == {False}
    assert module.modes == {False}
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()


@pytest.mark.parametrize(
    ("way", "words"),
    [("nan", "NaN in the model itself, so nothing is claimed"), ("random", "non-deterministic")],
)
def test_outputs_that_cannot_be_trusted_are_told_and_give_no_figure(way: str, words: str) -> None:
    events = measured(Net(way))
    check = one(events, "check")
    assert (check["ok"], check["claimed"]) == (True, False)
    assert words in check["detail"]
    assert any(words in event.get("text", "") for event in events if event["event"] == "message")
    assert not [event for event in events if event.get("metric", "").startswith("error.")]


@pytest.mark.parametrize(("way", "kind"), [("no memory", "out_of_memory"), ("exit", "error")])
def test_a_call_that_fails_is_a_result(way: str, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    failure = one(measured(Net(way)), "failure")
    assert (failure["kind"], failure["stage"]) == (kind, "first_run")
    assert "Traceback" in capsys.readouterr().err


def test_inputs_that_a_model_changes_are_as_captured_in_every_call() -> None:
    x = torch.ones(2, 4)
    assert one(measured(Net("in place"), x), "check")["ok"]
    assert torch.equal(x, torch.ones(2, 4))


def test_a_cache_does_not_grow_from_call_to_call() -> None:
    cache = Cache()
    events = measured(Net("cache"), torch.ones(2, 4), cache)
    assert one(events, "check")["ok"]
    assert cache.seen == []
