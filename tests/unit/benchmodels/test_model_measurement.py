"""Measuring with a runtime that does what a test says; the events it leaves."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmodels.check.output_check import OutputError
from benchmodels.check.reference import Reference
from benchmodels.failures import failure_of
from benchmodels.measure.batch import Batch
from benchmodels.measure.model_measurement import ModelMeasurement, Subject
from benchmodels.measure.work import CallWork
from benchmodels.reports import Reports
from benchmodels.runtimes.base import OpTime, RuntimeOptions, Unsupported
from benchmodels.settings import settings_from

Event = dict[str, Any]


class FakeSession:
    """Doubles what it gets. `wrong_from`: the call from which on it no longer does."""

    provider, precision = "fake", "fp32"

    def __init__(
        self, *, wrong_from: int = 10**9, changes: bool = False, builds: bool = False, fails_at: int = 10**9
    ) -> None:
        self.details: dict[str, Any] = {"threads": 3, "wait_policy": "passive", "more": 1}
        self.consumes_inputs, self.first_run_builds = False, builds
        self.calls = self.prepared = 0
        self.closed = False
        self._wrong_from, self._changes, self._fails_at = wrong_from, changes, fails_at

    def prepare(self, inputs: Any) -> Any:
        self.prepared += 1
        return {name: array.copy() for name, array in inputs.items()}

    def run(self, prepared: Any) -> Any:
        self.calls += 1
        if self.calls >= self._fails_at:
            raise RuntimeError("the device is gone")
        result = {"y": prepared["x"] * 2 + (self.calls >= self._wrong_from)}
        if self._changes:
            prepared["x"] += 1
        return result

    def outputs(self, result: Any) -> dict[str, Any]:
        return dict(result)

    def inputs_changed(self, prepared: Any, inputs: Any) -> bool:
        return not np.array_equal(prepared["x"], inputs["x"])

    def new_stream(self) -> FakeSession:
        return self

    def profile(self, prepared: Any, calls: int) -> list[OpTime]:
        return [OpTime("Add", f"node{i}", 1e-6, 1) for i in range(3)] + [
            OpTime(f"Op{i}", "", 1e-5 * i, 2) for i in range(1, 31)
        ]

    def close(self) -> None:
        self.closed = True


class FakeRuntime:
    name, kind, accepts, precisions = "fake", "module", (), ("fp32",)

    def version(self) -> str:
        return "1.0"

    def versions(self) -> dict[str, str]:
        return {"fake": "1.0"}


@pytest.fixture(autouse=True)
def no_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    """These sessions leave none, and to look through all that other tests have imported takes longer than a test."""
    nothing = SimpleNamespace(collect=lambda: 0, freeze=lambda: None, unfreeze=lambda: None)
    for module in ("model_measurement", "measured_loops"):
        monkeypatch.setattr(f"benchmodels.measure.{module}.gc", nothing)


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmodels.measure.measured_loops.ROUND_NS", 1_000_000)


INPUTS = {"x": np.arange(6.0, dtype=np.float32).reshape(2, 3)}
RIGHT = Reference({"y": INPUTS["x"].astype(np.float64) * 2}, "float64 eager", [OutputError(0.0, 0.0, 1.0)])


def measured(
    session: Any,
    reference: Any = RIGHT,
    build_s: float | None = None,
    batch: Batch | None = Batch(2, "--items"),  # noqa: B008 it never changes
    work: CallWork = CallWork(100.0, 50.0),  # noqa: B008
    without_tf32: Any = None,
    **settings: Any,
) -> list[Event]:
    events: list[Event] = []

    def load(options: RuntimeOptions) -> Any:
        if isinstance(session, Exception):
            raise session
        return session if options.tf32 else without_tf32

    def find() -> Reference:
        if isinstance(reference, Exception):
            raise reference
        return reference() if callable(reference) else reference

    reports = Reports(events.append)
    subject = Subject(load, INPUTS, lambda: batch, find, lambda precision: work, build_s)
    runtime: Any = FakeRuntime()
    measuring = ModelMeasurement(settings_from({"identity": "x", **settings}), runtime, reports, endless=False)
    try:
        measuring.measure(subject)
    except Exception as error:
        failure = failure_of(error)
        reports.failure(failure.kind, failure.text, failure.stage, failure.operator)
    return events


def one(events: list[Event], kind: str, **where: Any) -> Event:
    (found,) = [e for e in events if e["event"] == kind and all(e.get(k) == v for k, v in where.items())]
    return found


def figure(events: list[Event], metric: str) -> float:
    (value,) = one(events, "measured", metric=metric)["values"]
    return float(value)


def test_a_good_model_leaves_its_times_its_memory_and_a_good_check() -> None:
    session = FakeSession()
    events = measured(session, build_s=5.0)
    assert one(events, "check")["ok"]
    assert one(events, "runtime")["threads"] == 3
    assert one(events, "runtime")["details"] == {"more": 1}
    first = figure(events, "time.load") + figure(events, "time.first_run") + 5.0
    assert figure(events, "time.to_first_result") == pytest.approx(first)
    assert figure(events, "memory.host") > 1e6
    assert figure(events, "error.max_abs") == 0
    assert session.prepared == 1, "inputs that nobody changes are made once"
    assert session.closed


@pytest.mark.parametrize("call", [1, 50])
def test_a_wrong_answer_is_seen_whether_it_comes_at_once_or_later(call: int) -> None:
    check = one(measured(FakeSession(wrong_from=call)), "check")
    assert not check["ok"]
    assert "relative L2 error" in check["detail"]


def test_inputs_that_a_call_changes_are_made_anew_so_that_every_answer_is_right() -> None:
    session = FakeSession(changes=True)
    events = measured(session)
    assert one(events, "check")["ok"]
    assert session.prepared >= session.calls


def test_a_first_call_that_compiles_is_a_build_and_not_the_first_run() -> None:
    events = measured(FakeSession(builds=True))
    assert one(events, "build_step")["step"] == "compile"
    assert figure(events, "time.build") == one(events, "build_step")["seconds"]
    total = figure(events, "time.load") + figure(events, "time.build") + figure(events, "time.first_run")
    assert figure(events, "time.to_first_result") == pytest.approx(total)


def test_streams_are_measured_beside_the_latency() -> None:
    rates = one(measured(FakeSession(), streams=2), "measured", metric="throughput.streams")
    assert rates["labels"] == {"streams": "2"}
    assert rates["direction"] == "higher"
    assert len(rates["values"]) > 1


def test_outputs_of_streams_are_checked_too() -> None:
    class WrongInStreams(FakeSession):
        def new_stream(self) -> FakeSession:
            return FakeSession(wrong_from=1)

    assert one(measured(FakeSession(), streams=2), "check")["ok"]
    assert one(measured(WrongInStreams()), "check")["ok"]
    assert not one(measured(WrongInStreams(), streams=2), "check")["ok"]


def test_the_clock_of_a_runtime_is_told_beside_ours_and_only_where_there_is_one() -> None:
    class Timing(FakeSession):
        def last_call_s(self) -> float:
            return 1e-3 * self.calls

    events = measured(Timing())
    found, more = (one(events, "measured", metric=f"time.{where}_runtime") for where in ("in", "around"))
    first = found["values"][0]
    assert found["unit"] == more["unit"] == "s"
    assert len(more["values"]) == len(found["values"])
    assert all(added + own > 0 for added, own in zip(more["values"], found["values"], strict=True))
    assert found["values"] == [pytest.approx(first + 1e-3 * n) for n in range(len(found["values"]))]
    assert not [e for e in measured(FakeSession()) if e.get("metric") == "time.in_runtime"]


def test_a_profile_has_the_slowest_operators_and_the_rest_and_no_latency() -> None:
    session = FakeSession()
    events = measured(session, profile=True)
    found = [e for e in events if e.get("metric") == "op.time"]
    assert [e["labels"]["op"] for e in found] == [*(f"Op{i}" for i in range(30, 10, -1)), "other"]
    assert found[-1]["values"] == [pytest.approx(sum(1e-5 * i for i in range(1, 11)) + 3e-6)]
    assert found[-1]["labels"]["calls"] == "23"
    assert not [e for e in events if e["event"] == "check"]
    assert session.closed


def test_a_profile_without_an_operator_is_a_failure_that_says_so() -> None:
    class Empty(FakeSession):
        def profile(self, prepared: Any, calls: int) -> list[OpTime]:
            return []

    failure = one(measured(Empty(), profile=True), "failure")
    assert (failure["stage"], failure["text"]) == ("run", "the profiler of fake saw no operator")


@pytest.mark.parametrize(
    ("call", "stage"),
    [(1, "first_run"), (20, "run"), (102, "run")],
)
def test_a_call_that_fails_is_a_failure_with_its_stage(call: int, stage: str) -> None:
    session = FakeSession(fails_at=call)
    failure = one(measured(session), "failure")
    assert (failure["stage"], failure["kind"]) == (stage, "error")
    assert "the device is gone" in failure["text"]
    assert session.closed


def test_what_cannot_be_loaded_keeps_its_reason() -> None:
    failure = one(measured(Unsupported("load", "no such device", "aten::foo")), "failure")
    assert failure["operator"] == "aten::foo"
    assert (failure["stage"], failure["kind"]) == ("load", "unsupported")
    assert one(measured(MemoryError("too big")), "failure")["kind"] == "out_of_memory"


def test_without_a_reference_nothing_passes_for_right() -> None:
    check = one(measured(FakeSession(), RuntimeError("no copy")), "check")
    assert not check["ok"]
    assert "not checked, no reference" in check["detail"]


def test_large_outputs_are_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmodels.measure.model_measurement.SMALL_BYTES", 0)
    assert one(measured(FakeSession()), "check")["ok"]
    assert not one(measured(FakeSession(wrong_from=102)), "check")["ok"]


def test_work_is_that_of_an_item_where_items_are_known_else_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, float]] = []
    monkeypatch.setattr("benchprobe.give", lambda **values: given.append(values))
    known = measured(FakeSession(), batch=Batch(4, "--items"))
    assert one(known, "items") | {"t": 0} == {"event": "items", "t": 0, "items": 4, "items_from": "--items"}
    unknown = measured(FakeSession(), batch=None)
    assert (one(unknown, "items")["items"], one(unknown, "items")["items_from"]) == (None, None)
    assert given == [
        {"flops_per_item.fp32": 25.0, "bytes_per_item": 12.5},
        {"flops_per_call.fp32": 100.0, "bytes_per_call": 50.0},
    ]
    texts = [[event["text"] for event in events if event["event"] == "message"] for events in (known, unknown)]
    assert texts == [[], ["rates are in calls/s because the batch size is not known; set it with --items N"]]


def test_streams_count_calls() -> None:
    rates = one(measured(FakeSession(), streams=2, batch=Batch(4, "--items")), "measured", metric="throughput.streams")
    assert rates["unit"] == "calls/s"


@pytest.mark.parametrize(
    ("kinds", "precision", "where", "flops"),
    [
        ({"convolutions": 90.0, "products": 10.0}, "fp32", "convolutions only", {"tf32": 90.0, "fp32": 10.0}),
        ({"convolutions": 100.0}, "tf32", "convolutions", {"tf32": 100.0}),
        ({"products": 100.0}, "fp32", None, {"fp32": 100.0}),
    ],
)
def test_tf32_is_said_of_what_is_computed_in_it(
    monkeypatch: pytest.MonkeyPatch, kinds: dict[str, float], precision: str, where: str | None, flops: dict[str, float]
) -> None:
    given: list[dict[str, float]] = []
    monkeypatch.setattr("benchprobe.give", lambda **values: given.append(values))
    session = FakeSession()
    session.details = {"threads": 3, "tf32_allowed": ["convolutions", "recurrent layers"]}
    # Missed by more than fp32 may miss it, and by less than TF32 may.
    rough = Reference({"y": RIGHT.outputs["y"] * (1 + 1e-3)}, RIGHT.label, [OutputError(0.0, 0.0, 1.0)])
    events = measured(session, rough, batch=None, work=CallWork(100.0, None, None, kinds))
    last = [event for event in events if event["event"] == "runtime"][-1]
    assert (last["precision"], last["details"].get("tf32")) == (precision, where)
    assert given == [{f"flops_per_call.{name}": value for name, value in flops.items()}]
    assert one(events, "check")["ok"] == (where is not None)


def test_tf32_that_was_allowed_but_not_used_is_told_from_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, float]] = []
    monkeypatch.setattr("benchprobe.give", lambda **values: given.append(values))
    session = FakeSession()
    session.details = {"threads": 3, "tf32_allowed": ["convolutions", "recurrent layers"]}
    exact = Reference({"y": RIGHT.outputs["y"] * (1 + 2e-7)}, RIGHT.label, [OutputError(0.0, 1e-7, 1.0)])
    events = measured(session, exact, batch=None, work=CallWork(100.0, None, None, {"convolutions": 100.0}))
    last = [event for event in events if event["event"] == "runtime"][-1]
    assert (last["precision"], last["details"]["tf32"]) == ("fp32", None)
    assert given == [{"flops_per_call.fp32": 100.0}]
    assert any("was not used" in event["text"] for event in events if event["event"] == "message")


def test_what_a_session_knows_of_its_kernels_is_told_with_its_runtime() -> None:
    class Knowing(FakeSession):
        def kernels(self, prepared: Any) -> dict[str, Any]:
            return {"attention": ["flash"]}

    last = [event for event in measured(Knowing()) if event["event"] == "runtime"][-1]
    assert last["details"]["attention"] == ["flash"]


class RoundingSession(FakeSession):
    """On a GPU that may use TF32 in convolutions; its outputs are off by `error`."""

    def __init__(self, error: float) -> None:
        super().__init__()
        self.details["tf32_allowed"] = ["convolutions"]
        self._error = error

    def run(self, prepared: Any) -> Any:
        return {"y": prepared["x"] * 2 * (1 + self._error)}


CONVOLUTIONS = CallWork(100.0, 50.0, kinds={"convolutions": 100.0})


def test_rounding_of_tf32_is_told_and_kept_where_the_model_is_right_without_it() -> None:
    exact = RoundingSession(1e-7)
    events = measured(RoundingSession(0.012), work=CONVOLUTIONS, without_tf32=exact)
    check = one(events, "check")
    assert (check["ok"], check["claimed"], exact.closed) == (True, True, True)
    assert check["detail"].startswith("TF32 rounding 1.2 %: without TF32, max abs error")
    assert check["figures"]["relative_l2"] == pytest.approx(0.012, rel=1e-3)
    assert figure(events, "error.relative_l2") == pytest.approx(0.012, rel=1e-3)
    assert any(e["text"] == check["detail"] for e in events if e["event"] == "message")


@pytest.mark.parametrize(
    ("error", "without", "words"),
    [
        (0.012, 0.012, "TF32 does not explain it: without, the output"),
        (0.3, 1e-7, "relative L2 error 0.3 exceeds 0.01"),
        (np.nan, 1e-7, "NaN"),
    ],
)
def test_only_what_tf32_does_not_explain_is_invalid(error: float, without: float, words: str) -> None:
    check = one(measured(RoundingSession(error), work=CONVOLUTIONS, without_tf32=RoundingSession(without)), "check")
    assert not check["ok"]
    assert words.replace("the output", "output y") in check["detail"]


def test_a_check_that_takes_too_long_leaves_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    left = threading.Event()
    monkeypatch.setattr("benchmodels.measure.model_measurement.leave", lambda code: left.set())
    monkeypatch.setattr("benchmodels.measure.model_measurement.end_children", lambda: None)
    events = measured(FakeSession(), reference=lambda: RIGHT if left.wait(30) else None, build_timeout=0.2)
    check = next(e for e in events if e["event"] == "check")
    assert left.is_set()
    assert (check["ok"], check["claimed"]) == (True, False)
    assert check["detail"] == "not checked: checking its outputs took longer than 0.2 s, so nothing is claimed"
