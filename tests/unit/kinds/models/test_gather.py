"""What measuring and finding models told, as launches and discoveries."""

from __future__ import annotations

from typing import Any

import builders
import pytest

from benchwright.core.benchmark import Benchmark
from benchwright.core.job import Outcome
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.model import Model
from benchwright.core.run import Launch
from benchwright.core.status import Reason, Status
from benchwright.kinds.models.discovery.job import record_discovery
from benchwright.kinds.models.gather import ModelGatherer
from benchwright.kinds.registry import kind_of
from benchwright.record import record_launch

MODEL = Model(runtime="onnxruntime", python="py", cwd="/", script="/a.py", identity="ab")
BENCHMARK = Benchmark(
    name="a.py::Net@onnxruntime",
    workload=MODEL,
    source="a.py",
    loop="latency",
)
JOB = builders.job(id="a", benchmark=BENCHMARK.name)
START = {"event": "start", "t": 0, "pid": 1}
END = {"event": "end", "t": 9_000_000, "exit_code": 0, "duration_s": 1.0}
LOOP = [
    {"event": "loop", "process": 1, "loop": 1, "name": "latency", "counts": True},
    {"event": "steps", "process": 1, "loop": 1, "first": 0, "phase": "measured", "t": 0}
    | {"step_ns": [1_000_000, 2_000_000, 3_000_000], "wait_ns": [0, 0, 0], "items": 1},
]


def launch(*events: dict[str, Any]) -> Launch:
    return record_launch([START, *events, END], JOB, BENCHMARK, kind_of)


def test_steps_of_a_model_are_its_latency() -> None:
    done = launch(*LOOP)
    assert done.status is Status.OK
    latency = done.measurement("latency")
    assert latency is not None
    assert latency.samples == pytest.approx((1e-3, 2e-3, 3e-3))
    assert done.measurement("step_time") is None


STREAMS = {"event": "measured", "t": 1, "metric": "throughput.streams", "unit": "calls/s", "values": [50.0, 60.0]}


@pytest.mark.parametrize(("items", "unit", "factor"), [(4, "items/s", 4), (None, "calls/s", 1)])
def test_rates_are_of_items_where_they_are_known_and_of_calls_where_not(
    items: int | None, unit: str, factor: int
) -> None:
    known = {"event": "items", "t": 1, "items": items, "items_from": "--items" if items else None}
    done = launch(*LOOP, STREAMS, known)
    for metric, first in (("rate", 1000), ("throughput.streams", 50)):
        found = done.measurement(metric)
        assert found is not None
        assert (metric, found.unit, found.samples[0]) == (metric, unit, pytest.approx(factor * first))
    assert (rate := done.measurement("rate")) is not None
    assert rate.value == pytest.approx(factor * 3 / 6e-3)
    assert done.facts["items"] == {"items": items, "items_from": known["items_from"]}


MEMORY = {"event": "measured", "t": 5_000_000, "metric": "memory.host", "unit": "B", "values": [1e6]}
CHECK = {"event": "check", "t": 6_000_000, "name": "outputs", "ok": False, "detail": "wrong", "figures": {}}


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        ({"timed_out": True, "detail": "it ran longer than 60 s"}, "it ran longer than 60 s"),
        ({"out_of_memory": True, "signal": 9}, "out of memory"),
    ],
)
def test_what_was_measured_is_kept_unchecked_if_only_the_check_was_cut_short(ended: dict[str, Any], words: str) -> None:
    def launched(*events: dict[str, Any]) -> Launch:
        return record_launch([START, *LOOP, *events, END | ended], JOB, BENCHMARK, kind_of)

    done = launched(MEMORY, {"event": "items", "t": 5_500_000, "items": 4, "items_from": "--items"})
    assert (done.status, done.reason, done.detail) == (Status.OK, None, None)
    rate = done.measurement("rate")
    assert rate is not None
    assert rate.unit == "items/s"
    check = done.facts["check"]
    assert (check["ok"], check["claimed"]) == (True, False)
    (note,) = [note.text for note in done.notes if note.text.startswith("not checked")]
    assert words in note
    assert check["detail"] == note
    assert launched().status is Status.FAILED, "it was still being measured"
    assert launched(MEMORY, CHECK).status is Status.FAILED, "its outputs are known to be wrong"


@pytest.mark.parametrize("counted", [1, 4])
def test_a_model_that_told_no_items_counts_calls_whatever_its_loop_took_for_items(counted: int) -> None:
    rate = launch(LOOP[0], LOOP[1] | {"items": counted}).measurement("rate")
    assert rate is not None
    assert (rate.unit, rate.samples[0]) == ("calls/s", pytest.approx(1000))


def test_energy_is_that_of_an_item_or_of_a_call() -> None:
    energy = Measurement(metric="energy.item", unit="J", direction=Direction.LOWER, samples=(8.0,), source="sampler")
    for items, expected in ((4, ("energy.item", (2.0,))), (None, ("energy.call", (8.0,)))):
        gatherer = ModelGatherer(MODEL)
        gatherer.add({"event": "items", "items": items})
        assert [(m.metric, m.samples) for m in gatherer.interpreted([energy])] == [expected]


def test_preparing_inputs_is_no_part_of_a_call() -> None:
    steps = {**LOOP[1], "wait_ns": [500_000, 500_000, 1_000_000]}
    done = launch(LOOP[0], steps)
    latency, rate = (done.measurement(name) for name in ("latency", "rate"))
    assert latency is not None
    assert rate is not None
    assert latency.samples == pytest.approx((0.5e-3, 1.5e-3, 2e-3))
    assert rate.samples == pytest.approx((1 / 0.5e-3, 1 / 1.5e-3, 1 / 2e-3))
    assert rate.value == pytest.approx(3 / 4e-3)
    assert done.measurement("wait_share") is None


def test_figures_and_facts_are_kept() -> None:
    figure = {"event": "measured", "metric": "time.load", "unit": "s", "direction": "lower", "values": [0.5]}
    runtime = {"event": "runtime", "t": 1, "name": "onnxruntime", "threads": 2}
    step = {"event": "build_step", "t": 1, "step": "export", "seconds": 2.0, "cached": False, "ok": True}
    check = {"event": "check", "t": 1, "name": "outputs", "ok": True, "detail": "fine", "figures": {"max_abs": 1e-7}}
    done = launch(figure, runtime, step, check, *LOOP)
    assert done.measurement("time.load") is not None
    assert done.facts["runtime"]["threads"] == 2
    assert done.facts["build"][0]["step"] == "export"
    assert done.facts["check"]["figures"] == {"max_abs": 1e-7}


def test_a_fast_wrong_answer_is_invalid() -> None:
    done = launch(*LOOP, {"event": "check", "t": 1, "name": "outputs", "ok": False, "detail": "relative L2 0.3"})
    assert (done.status, done.reason, done.detail) == (Status.FAILED, Reason.INVALID, "relative L2 0.3")


@pytest.mark.parametrize(
    ("kind", "status", "reason"),
    [
        ("unsupported", Status.FAILED, Reason.BUILD_FAILED),
        ("crashed", Status.FAILED, Reason.BUILD_FAILED),
        ("timed_out", Status.FAILED, Reason.TIMED_OUT),
        ("out_of_memory", Status.FAILED, Reason.OUT_OF_MEMORY),
        ("error", Status.FAILED, Reason.CRASHED),
        ("unavailable", Status.SKIPPED, Reason.LACKS_CAPABILITY),
    ],
)
def test_a_failed_step_is_a_result_with_its_stage(kind: str, status: Status, reason: Reason) -> None:
    failure = {"event": "failure", "t": 1, "stage": "export", "kind": kind, "text": "no way", "operator": "aten::foo"}
    done = launch(failure)
    assert (done.status, done.reason) == (status, reason)
    assert done.detail is not None
    assert "no way" in done.detail
    if kind == "unsupported":
        assert done.detail == "in export: unsupported operator aten::foo: no way"


def test_no_latency_is_no_success() -> None:
    assert launch().reason is Reason.NO_DATA


def test_the_last_word_on_a_model_counts() -> None:
    first = {"event": "model", "identity": "ab", "class": "Net", "calls": 1, "inputs": [], "place": None}
    events = [
        first,
        {"event": "model", "identity": "cd", "class": "Other"},
        {**first, "calls": 9},
        {**first, "calls": 1, "main_process": False, "reason": "in a child"},
        {"event": "discovery_end", "hook_lost": True, "processes_started": 2, "exception": None},
    ]
    found = record_discovery(events, "a.py", Outcome(job="a", exit_code=0))
    assert [(m.identity, m.calls) for m in found.models] == [("ab", 9), ("cd", 0)]
    assert found.models[0].measurable
    assert found.trouble is None
    assert found.ended
    assert any("replaced" in note for note in found.notes)
    assert any("2 other processes" in n for n in found.notes)


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Outcome(job="a", exit_code=7), "exit code 7"),
        (Outcome(job="a", signal=11), "SIGSEGV"),
        (Outcome(job="a", timed_out=True, duration_s=12), "after 12.0 s"),
        (Outcome(job="a", detail="no such interpreter"), "no such interpreter"),
    ],
)
def test_how_a_script_failed_is_told_and_what_it_told_before_is_kept(outcome: Outcome, said: str) -> None:
    found = record_discovery([{"event": "model", "identity": "ab", "class": "Net"}], "a.py", outcome)
    assert found.trouble is not None
    assert said in found.trouble
    assert len(found.models) == 1
    assert not found.ended


def _timed_out(*events: dict[str, Any]) -> str:
    ended = END | {"t": 60_000_000_000, "timed_out": True, "exit_code": None, "detail": "it ran longer than 60 s"}
    done = record_launch([START, *events, ended], JOB, BENCHMARK, kind_of)
    assert done.reason is Reason.TIMED_OUT
    assert done.detail is not None
    return done.detail


def _after(seconds: float, event: str, /, **values: Any) -> dict[str, Any]:
    return {"event": event, "process": 1, "t": round(seconds * 1e9), **values}


def test_a_launch_that_took_too_long_tells_what_its_time_went_into() -> None:
    assert _timed_out() == "it ran longer than 60 s (making the model and trying a call of it 60 s)"
    begun = _after(2, "build_begin", step="export")
    exported = _after(33.5, "build_step", step="export", seconds=31.5, ok=True)
    assert _timed_out(begun).endswith("(making the model and trying a call of it 2 s, export 58 s)")
    assert _timed_out(begun, exported, _after(33.5, "build_begin", step="optimise")).endswith(
        "(making the model and trying a call of it 2 s, export 31.5 s, optimise 26.5 s)"
    )
    assert _timed_out(exported).endswith("a call of it 2 s, export 31.5 s, what came after it 26.5 s)")


def test_the_time_of_an_earlier_build_is_no_part_of_a_launch() -> None:
    cached = _after(1, "build_step", step="export", seconds=31.5, ok=True, cached=True)
    first = _after(5, "measured", metric="time.first_run", values=[3.0])
    assert _timed_out(cached, _after(2, "model"), first, _after(9, "items", items=1)).endswith(
        "(making the model and trying a call of it 2 s, loading it and its first call 3 s, the measured calls 4 s, "
        "checking its outputs 51 s)"
    )


@pytest.mark.parametrize(
    ("so_far", "part"),
    [
        ([], "making the model and trying a call of it"),
        ([{"event": "model", "t": 1}], "loading it and its first call"),
        (
            [
                {"event": "model", "t": 1},
                {"event": "build_step", "t": 5, "step": "compile", "seconds": 1.0, "ok": True},
            ],
            "loading it and its first call",
        ),
        ([{"event": "model", "t": 1}, {"event": "build_begin", "t": 2, "step": "compile"}], "compile"),
        (
            [{"event": "model", "t": 1}, {"event": "measured", "t": 5, "metric": "time.first_run", "values": [1.0]}],
            "the measured calls",
        ),
    ],
)
def test_a_crash_in_native_code_is_told_with_how_far_it_had_come(so_far: list[dict[str, Any]], part: str) -> None:
    """As AOTInductor on CUDA, which ends in a segmentation fault when it loads a package."""
    killed = END | {"exit_code": None, "signal": 11}
    done = record_launch([START, *so_far, killed], JOB, BENCHMARK, kind_of)
    assert (done.status, done.reason) == (Status.FAILED, Reason.SIGNALLED)
    assert done.detail == f"ended by SIGSEGV in: {part}"
