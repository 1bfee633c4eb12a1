"""What the measuring of a model told beside its loop: what it is, how it was built, whether its outputs are right."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from benchwright.domain.benchmark import Benchmark
from benchwright.domain.measurement import Measurement
from benchwright.domain.metric import Direction
from benchwright.domain.model import Model
from benchwright.domain.status import Reason, Status
from benchwright.recorder.verdict import Verdict

Event = dict[str, Any]

_REASONS = {
    "timed_out": Reason.TIMED_OUT,
    "out_of_memory": Reason.OUT_OF_MEMORY,
    "crashed": Reason.BUILD_FAILED,
    "unsupported": Reason.BUILD_FAILED,
    "not_found": Reason.NO_DATA,
}


@dataclass
class ModelRecord:
    """Gathered from the events of one launch."""

    model: Event | None = None
    runtime: Event | None = None
    build: list[Event] = field(default_factory=list)
    check: Event | None = None
    failure: Event | None = None
    figures: list[Measurement] = field(default_factory=list)

    def add_figure(self, event: Event) -> None:
        self.figures.append(
            Measurement(
                metric=str(event["metric"]),
                unit=event.get("unit"),
                direction=Direction(event.get("direction", "neither")),
                samples=tuple(float(v) for v in event["values"]),
                source="model",
                labels={str(k): str(v) for k, v in (event.get("labels") or {}).items()},
            )
        )

    def facts(self) -> dict[str, Any]:
        told = {"model": self.model, "runtime": self.runtime, "build": self.build or None, "check": self.check}
        return {name: _without_frame(each) for name, each in (told | {"failure": self.failure}).items() if each}


def _without_frame(told: Any) -> Any:
    """An event without what only the stream needs."""
    if isinstance(told, list):
        return [_without_frame(each) for each in told]
    return {k: v for k, v in told.items() if k not in ("event", "process", "t")}


def as_model_metrics(found: list[Measurement], benchmark: Benchmark) -> list[Measurement]:
    """Measurements of a model's loop as those of its calls: a call is a step without the wait for its inputs."""
    if not isinstance(benchmark.workload, Model):
        return found
    steps = next((m for m in found if m.metric == "step_time"), None)
    waits = next((m for m in found if m.metric == "wait_time"), None)
    if steps is None or waits is None:
        return found
    measured = _without_wait(steps.samples, waits.samples)
    before = _without_wait(steps.warmup_samples, waits.warmup_samples)
    latency = msgspec.structs.replace(steps, metric="latency", samples=measured, warmup_samples=before)
    made = []
    for m in found:
        if m.metric == "rate" and m.labels == steps.labels and len(m.samples) == len(measured):
            m = _per_call(m, steps, latency)
        elif m.metric == "throughput" and m.labels == steps.labels and sum(measured) > 0:
            # What preparing inputs takes is no part of what a model does in a second.
            m = msgspec.structs.replace(m, samples=(m.samples[0] * sum(steps.samples) / sum(measured),))
        made.append(latency if m is steps else m)
    return [m for m in made if m is not waits]


def _without_wait(steps: tuple[float, ...], waits: tuple[float, ...]) -> tuple[float, ...]:
    if len(steps) != len(waits):
        return steps
    return tuple(step - wait if step > wait else step for step, wait in zip(steps, waits, strict=True))


def _per_call(rate: Measurement, steps: Measurement, latency: Measurement) -> Measurement:
    """Items of a call over its latency."""

    def faster(rates: tuple[float, ...], before: tuple[float, ...], after: tuple[float, ...]) -> tuple[float, ...]:
        if not len(rates) == len(before) == len(after):
            return rates
        return tuple(r * b / a if a > 0 else r for r, b, a in zip(rates, before, after, strict=True))

    return msgspec.structs.replace(
        rate,
        samples=faster(rate.samples, steps.samples, latency.samples),
        warmup_samples=faster(rate.warmup_samples, steps.warmup_samples, latency.warmup_samples),
    )


def judge_model(benchmark: Benchmark, record: ModelRecord, found: list[Measurement]) -> Verdict | None:
    """What is wrong with a launch that ended well; None if nothing is, or it measured no model."""
    if not isinstance(benchmark.workload, Model):
        return None
    if record.failure is not None:
        return _failed(record.failure)
    if record.check is not None and not record.check.get("ok"):
        return Verdict(Status.FAILED, Reason.INVALID, str(record.check.get("detail") or "its outputs are wrong"))
    wanted = "op.time" if benchmark.workload.profile else "latency"
    if not any(m.metric == wanted and m.samples for m in found):
        return Verdict(Status.FAILED, Reason.NO_DATA, "the model was not measured: the script ended before its call")
    return None


def _failed(failure: Event) -> Verdict:
    kind, stage = str(failure.get("kind")), str(failure.get("stage") or "run")
    text = str(failure.get("text") or kind)
    if kind == "unavailable":
        return Verdict(Status.SKIPPED, Reason.LACKS_CAPABILITY, text)
    operator = failure.get("operator")
    named = f"unsupported operator {operator}: {text}" if operator and str(operator) not in text else text
    return Verdict(Status.FAILED, _REASONS.get(kind, Reason.CRASHED), f"in {stage}: {named}")
