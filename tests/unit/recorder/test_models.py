"""What measuring and finding models told, as launches and discoveries."""

from __future__ import annotations

from typing import Any

import pytest

from benchwright.domain.benchmark import Benchmark
from benchwright.domain.job import Job, Outcome
from benchwright.domain.model import Model
from benchwright.domain.run import Launch
from benchwright.domain.status import Reason, Status
from benchwright.recorder import record_launch
from benchwright.recorder.discovery import record_discovery

BENCHMARK = Benchmark(
    name="a.py::Net@onnxruntime",
    workload=Model(runtime="onnxruntime", python="py", cwd="/", script="/a.py", identity="ab"),
    source="a.py",
    loop="latency",
)
JOB = Job(id="a", benchmark=BENCHMARK.name, argv=("py",), cwd="/", stream="/s", log="/l")
START = {"event": "start", "t": 0, "pid": 1}
END = {"event": "end", "t": 9_000_000, "exit_code": 0, "duration_s": 1.0}
LOOP = [
    {"event": "loop", "process": 1, "loop": 1, "name": "latency", "counts": True},
    {"event": "steps", "process": 1, "loop": 1, "first": 0, "phase": "measured", "t": 0}
    | {"step_ns": [1_000_000, 2_000_000, 3_000_000], "wait_ns": [0, 0, 0], "items": 4},
]


def launch(*events: dict[str, Any]) -> Launch:
    return record_launch([START, *events, END], JOB, BENCHMARK)


def test_steps_of_a_model_are_its_latency() -> None:
    done = launch(*LOOP)
    assert done.status is Status.OK
    latency = done.measurement("latency")
    assert latency is not None
    assert latency.samples == pytest.approx((1e-3, 2e-3, 3e-3))
    rate = done.measurement("rate")
    assert rate is not None
    assert rate.unit == "items/s"
    assert rate.samples[0] == pytest.approx(4000)
    assert done.measurement("step_time") is None


def test_preparing_inputs_is_no_part_of_a_call() -> None:
    steps = {**LOOP[1], "wait_ns": [500_000, 500_000, 1_000_000]}
    done = launch(LOOP[0], steps)
    latency, rate, throughput = (done.measurement(name) for name in ("latency", "rate", "throughput"))
    assert latency is not None
    assert rate is not None
    assert throughput is not None
    assert latency.samples == pytest.approx((0.5e-3, 1.5e-3, 2e-3))
    assert rate.samples == pytest.approx((4 / 0.5e-3, 4 / 1.5e-3, 4 / 2e-3))
    assert throughput.samples == pytest.approx((12 / 4e-3,))


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
        (Outcome(job="a", timed_out=True, duration_s=12), "after 12 s"),
        (Outcome(job="a", detail="no such interpreter"), "no such interpreter"),
    ],
)
def test_how_a_script_failed_is_told_and_what_it_told_before_is_kept(outcome: Outcome, said: str) -> None:
    found = record_discovery([{"event": "model", "identity": "ab", "class": "Net"}], "a.py", outcome)
    assert found.trouble is not None
    assert said in found.trouble
    assert len(found.models) == 1
    assert not found.ended
