"""Reports of a measured model besides its loop: its identity, its build, whether its outputs are right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.model import Model
from benchwright.core.note import Note
from benchwright.core.status import Reason, Status
from benchwright.kinds.models.generations import of_generations
from benchwright.kinds.models.time_breakdown import TimeSpent
from benchwright.record.base import Gatherer
from benchwright.record.loops.steps import samples_of
from benchwright.record.stream_file import Event
from benchwright.record.verdict import LaunchVerdict

CALLS = "calls/s"
_OF_CALLS = ("items/s", "steps/s", CALLS)  # each step of the loop is one call

_OF_LOOPS = ("wait_time", "step_rate", "wait_share")  # meaningless for calls of a model
_KEPT = ("model", "items", "runtime", "check", "generations", "built")
_CUT_SHORT = (Reason.TIMED_OUT, Reason.OUT_OF_MEMORY)
_MEASURED = "memory.host"  # reported when all loops have ended
_REASONS = {
    "timed_out": Reason.TIMED_OUT,
    "out_of_memory": Reason.OUT_OF_MEMORY,
    "crashed": Reason.BUILD_FAILED,
    "unsupported": Reason.BUILD_FAILED,
    "not_found": Reason.NO_DATA,
}


class LoopGatherer(Gatherer):
    """A script that was to be measured by its loop, and reported nothing, was not measured."""

    def judge(self, found: list[Measurement]) -> LaunchVerdict | None:
        if any(m.source not in ("process", "sampler") for m in found):
            return None
        detail = "nothing was measured: benchprobe.iterate was never called, or its only step was warm-up"
        detail += "; time all of the script with --as command"
        return LaunchVerdict(Status.FAILED, Reason.NO_DATA, detail)


class ModelGatherer(Gatherer):
    """Gathers the events of a model's process."""

    measures_itself = True

    def __init__(self, model: Model) -> None:
        self._model = model
        self._events: dict[str, Event] = {}  # the last event of each name
        self._build: list[Event] = []
        self._figures: list[Measurement] = []
        self._spent = TimeSpent()
        self._not_checked = ""

    def add(self, event: Event) -> None:
        name = event["event"]
        self._spent.add(event)
        if name == "build_step":
            self._build.append(event)
        elif name == "measured":
            self._figures.append(_figure(event))
        elif name == "failure":
            self._events.setdefault(name, event)  # later ones are consequences
        elif name in _KEPT:
            self._events[name] = event

    def measurements(self) -> list[Measurement]:
        return self._figures

    def interpreted(self, found: list[Measurement]) -> list[Measurement]:
        """Steps of its loop are calls; rates are in items if items per call are known."""
        items = (self._events.get("items") or {}).get("items")
        known = items if isinstance(items, int) and items > 0 else None
        made = [_in_items(m, known) for m in _of_calls(found)]
        if "generations" in self._events:
            made += of_generations(self._events["generations"], found)
        return made

    def judge(self, found: list[Measurement]) -> LaunchVerdict | None:
        if "failure" in self._events:
            return _failed(self._events["failure"])
        if self._model.stops_after and "built" in self._events:
            return None
        check = self._events.get("check")
        if check is not None and not check.get("ok"):
            return LaunchVerdict(Status.FAILED, Reason.INVALID, str(check.get("detail") or "its outputs are wrong"))
        wanted = "op.time" if self._model.profile else "latency"
        if any(m.metric == wanted and m.samples for m in found):
            return None
        detail = "the model was not measured: the script ended before its call; see 'benchwright logs last'"
        return LaunchVerdict(Status.FAILED, Reason.NO_DATA, detail)

    def keeps(self, verdict: LaunchVerdict, found: list[Measurement]) -> bool:
        """It ran out of time or memory while its outputs were checked: it is kept, unchecked."""
        if verdict.reason not in _CUT_SHORT or "check" in self._events or "failure" in self._events:
            return False
        if not any(m.metric == _MEASURED for m in self._figures) or not any(m.metric == "latency" for m in found):
            return False
        self._not_checked = f"not checked, so nothing is claimed: while its outputs were checked, {verdict.detail}"
        self._events["check"] = {
            "name": "outputs",
            "ok": True,
            "claimed": False,
            "detail": self._not_checked,
            "figures": {},
        }
        return True

    def notes(self) -> list[Note]:
        return [Note(text=self._not_checked)] if self._not_checked else []

    def spent(self, began: int, ended: int) -> str:
        return self._spent.text(began, ended)

    def last_part(self) -> str:
        return self._spent.last()

    def facts(self) -> dict[str, object]:
        facts: dict[str, object] = {name: self._events.get(name) for name in ("model", "items", "runtime")}
        facts |= {
            "built": self._events.get("built"),
            "build": self._build or None,
            "check": self._events.get("check"),
            "failure": self._events.get("failure"),
        }
        return {name: _without_frame(each) for name, each in facts.items() if each}


def _figure(event: Event) -> Measurement:
    return Measurement(
        metric=str(event["metric"]),
        unit=event.get("unit"),
        direction=Direction(event.get("direction", "neither")),
        samples=tuple(float(v) for v in event["values"]),
        source="model",
        labels={str(k): str(v) for k, v in (event.get("labels") or {}).items()},
    )


def _without_frame(facts: Any) -> Any:
    """An event without the fields of the stream."""
    if isinstance(facts, list):
        return [_without_frame(each) for each in facts]
    return {k: v for k, v in facts.items() if k not in ("event", "process", "t")}


def _of_calls(found: list[Measurement]) -> list[Measurement]:
    """A call is a step less the wait for its inputs."""
    steps = next((m for m in found if m.metric == "step_time"), None)
    waits = next((m for m in found if m.metric == "wait_time"), None)
    if steps is None or waits is None:
        return found
    measured = _without_wait(steps.samples, waits.samples)
    before = _without_wait(steps.warmup_samples, waits.warmup_samples)
    latency = msgspec.structs.replace(steps, metric="latency", samples=measured, warmup_samples=before)
    made = []
    for m in found:
        if m.metric == "rate" and m.labels == steps.labels:
            m = _calls_over_latency(m, latency)
        if m.metric not in _OF_LOOPS or m.labels != steps.labels:
            made.append(latency if m is steps else m)
    return made


def _in_items(m: Measurement, items: int | None) -> Measurement:
    """From calls to items: rates of its loop and streams, and the energy of a step."""
    each = float(items or 1)
    if m.metric.startswith("energy.item"):
        samples = tuple(value / each for value in m.samples)
        metric = m.metric.replace("item", "call") if items is None else m.metric
        return msgspec.structs.replace(m, metric=metric, samples=samples)
    if m.source not in ("loop", "model") or m.unit not in _OF_CALLS:
        return m
    return msgspec.structs.replace(
        m,
        unit=CALLS if items is None else "items/s",
        samples=samples_of([value * each for value in m.samples]),
        warmup_samples=samples_of([value * each for value in m.warmup_samples]),
        value=None if m.value is None else m.value * each,
    )


def _without_wait(steps: Sequence[float], waits: Sequence[float]) -> Sequence[float]:
    if len(steps) != len(waits):
        return steps
    return samples_of(step - wait if step > wait else step for step, wait in zip(steps, waits, strict=True))


def _calls_over_latency(rate: Measurement, latency: Measurement) -> Measurement:
    """One call over its latency: preparing inputs does not count in a model's throughput."""

    def calls(latencies: Sequence[float]) -> Sequence[float]:
        return samples_of(1 / each for each in latencies if each > 0)

    total = math.fsum(latency.samples)
    return msgspec.structs.replace(
        rate,
        value=len(latency.samples) / total if total > 0 else None,
        samples=calls(latency.samples),
        warmup_samples=calls(latency.warmup_samples),
    )


def _failed(failure: Event) -> LaunchVerdict:
    kind, stage = str(failure.get("kind")), str(failure.get("stage") or "run")
    text = str(failure.get("text") or kind)
    if kind == "unavailable":
        return LaunchVerdict(Status.SKIPPED, Reason.LACKS_CAPABILITY, text)
    operator = failure.get("operator")
    named = f"unsupported operator {operator}: {text}" if operator and str(operator) not in text else text
    return LaunchVerdict(Status.FAILED, _REASONS.get(kind, Reason.CRASHED), f"in {stage}: {named}")
