"""The types of each event's keys. An event with other types is damaged: it is skipped and counted, like a line that is not
JSON. Unknown keys and unknown events are ignored.

Numbers that may be NaN or infinite (a diverging loss is data) are `float`; times and counts are finite.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

_FAR = 1 << 62  # 146 years in nanoseconds; sums of a few still fit 64 bits
_MOST = 1 << 53  # beyond, a float cannot represent every integer

Moment = Annotated[int, Meta(ge=-_FAR, le=_FAR)]
Whole = Annotated[int, Meta(ge=-_MOST, le=_MOST)]
Finite = Annotated[float, Meta(ge=-1.7976931348623157e308, le=1.7976931348623157e308)]
Scalar = float | str | bool | None


class _Event(msgspec.Struct, kw_only=True):
    """Used for validation only: no instance is kept."""


class _OfLoop(_Event):
    process: Whole
    loop: Whole


class _Timed(_Event):
    t: Moment | None = None
    wall: Finite | None = None


class StreamEvent(_Timed):
    version: Whole | None = None


class StartEvent(_Timed):
    pid: Whole | None = None


class ProbeEvent(_Timed, kw_only=True):
    process: Whole
    rank: Whole | None = None
    python: str | None = None
    executable: str | None = None
    prefix: str | None = None
    path: list[str] | None = None
    version: Whole | None = None


class LoopEvent(_OfLoop):
    name: str
    counts: bool | None = None
    total: Whole | None = None
    batch_size: Whole | None = None


class StepsEvent(_OfLoop):
    t: Moment
    step_ns: list[Moment]
    wait_ns: list[Moment]
    first: Whole | None = None
    phase: Literal["warmup", "measured", "after"] = "measured"
    items: Finite | list[Finite | None] | None = None
    device_ns: list[Moment] | None = None
    window_ns: Moment | msgspec.UnsetType = msgspec.UNSET
    device_stride: Whole = 1
    given: dict[str, tuple[list[Whole] | None, list[Scalar] | dict[str, str]]] = {}

    def __post_init__(self) -> None:
        for column in (self.wait_ns, self.device_ns, self.items):
            if isinstance(column, list) and len(column) != len(self.step_ns):
                raise ValueError("columns of different lengths")


class MeasureEvent(_OfLoop):
    t: Moment | None = None
    step: Whole | None = None
    warmup: str | None = None
    waited_ns: Moment | None = None
    cpu_ns: Moment | None = None


class _Observation(_Event):
    first: Whole
    steps: Whole
    ns: Moment | None = None


class StopDetail(_Event):
    median_ns: Finite | None = None
    half_width: float | None = None
    effective_samples: float | None = None
    reached: bool | None = None
    interval_s: Finite | msgspec.UnsetType = msgspec.UNSET
    observations: list[_Observation] | msgspec.UnsetType = msgspec.UNSET


class LoopStop(_Event):
    rule: str | None = None
    steps: Whole | None = None
    by: str | None = None
    detail: StopDetail | None = None
    turn_s: Finite | None = None
    turns: Whole | None = None
    paused_ns: Moment | None = None


class StopEvent(LoopStop, kw_only=True):
    process: Whole
    loop: Whole
    t: Moment | None = None
    step: Whole | None = None
    cpu_ns: Moment | None = None


class LoopEndEvent(_OfLoop):
    how: str
    steps: Whole | None = None


class GiveEvent(_Event):
    values: dict[str, Scalar]
    loop: Whole | None = None


class MessageEvent(_Event):
    text: str
    severity: str | None = None
    source: str | msgspec.UnsetType = msgspec.UNSET


class LostEvent(_Event):
    events: Whole | msgspec.UnsetType = msgspec.UNSET


class SampleEvent(_Event):
    t: Moment
    sampler: str
    values: dict[str, Finite | str | bool | None]
    device: Whole | str | None = None


class MetricEvent(_Event):
    name: str
    values: list[float]


class PrintedEvent(_Event):
    lines: list[tuple[Whole, str]]
    cut: bool = False


class ReportedEvent(_Event):
    t: Moment
    dialect: str
    lines: list[str]


class _Nearest(_Event):
    line: Whole
    text: str


class _Extracted(_Event):
    matches: Whole = 0
    unparsed: Whole = 0
    unparsed_examples: list[_Nearest] = []
    partial: Whole = 0
    partial_examples: list[_Nearest] = []
    cut_off: Whole = 0
    cut_off_lines: list[Whole] = []
    given_up: bool = False
    nearest: list[_Nearest] | None = None


class ExtractionEvent(_Event):
    metrics: dict[str, _Extracted] = {}


class _Place(_Event):
    file: str | None = None
    line: Whole | None = None


class _Input(_Event):
    name: str
    shape: list[Whole] | None = None
    dtype: str | None = None
    value: str | None = None


class ModelEvent(_Event):
    identity: str
    class_: str = msgspec.field(name="class")
    qualified: str = ""
    weights: str | None = None
    content: str | None = None
    parameters: Whole = 0
    parameter_bytes: Whole = 0
    trainable: Whole = 0
    dtype: str | None = None
    device: str | None = None
    place: _Place | None = None
    made_at: _Place | None = None
    inputs: list[_Input] = []
    items: Whole | None = None
    calls: Whole = 0
    mode: str = ""
    reason: str | None = None
    flops: Finite | None = None
    bytes: Finite | None = None
    flops_note: str | None = None


class RuntimeEvent(_Event):
    name: str | None = None
    version: str | None = None
    device: str | None = None
    provider: str | None = None
    threads: Whole | None = None
    wait_policy: str | None = None
    precision: str | None = None
    streams: Whole | None = None
    details: dict[str, Any] | None = None


class BuildStepEvent(_Event):
    step: str
    seconds: Finite | None = None
    cached: bool | None = None
    ok: bool | None = None
    detail: str | None = None
    versions: dict[str, str | None] | None = None


class MeasuredEvent(_Event):
    metric: str
    values: list[float]
    unit: str | None = None
    direction: Literal["higher", "lower", "neither"] = "neither"
    labels: dict[str, Scalar] | None = None


class _Figures(_Event):
    max_abs: float | None = None
    relative_l2: float | None = None
    cosine: float | None = None
    tolerance: float | None = None
    reference: str | None = None


class CheckEvent(_Event):
    name: str | None = None
    ok: bool | None = None
    detail: str | None = None
    figures: _Figures | None = None


class WrittenEvent(_Event):
    output: str
    lines: list[str] = []
    wrong: str | None = None


class ComparedEvent(_Event):
    output: str
    figures: dict[str, Finite] = {}
    wrong: str | None = None
    worst: dict[str, Any] | None = None
    statistics: dict[str, Any] = {}


class FailureEvent(_Event):
    stage: str | None = None
    kind: str | None = None
    text: str | None = None
    operator: str | None = None


class EndEvent(_Timed):
    exit_code: Whole | None = None
    signal: Whole | None = None
    timed_out: bool | None = None
    stopped: bool | None = None
    agent_lost: bool | None = None
    early_stop: bool | None = None
    out_of_memory: bool | None = None
    duration_s: Finite | None = None
    cpu_s: Finite | None = None
    usage: dict[str, Finite] | None = None
    max_rss_bytes: Finite | None = None
    max_rss_is_bound: bool | None = None
    detail: str | None = None


_TYPES: dict[str, type[_Event]] = {
    "stream": StreamEvent,
    "start": StartEvent,
    "probe": ProbeEvent,
    "loop": LoopEvent,
    "steps": StepsEvent,
    "measure": MeasureEvent,
    "stop": StopEvent,
    "loop_end": LoopEndEvent,
    "give": GiveEvent,
    "message": MessageEvent,
    "lost": LostEvent,
    "sample": SampleEvent,
    "metric": MetricEvent,
    "printed": PrintedEvent,
    "reported": ReportedEvent,
    "extraction": ExtractionEvent,
    "model": ModelEvent,
    "runtime": RuntimeEvent,
    "build_step": BuildStepEvent,
    "measured": MeasuredEvent,
    "check": CheckEvent,
    "compared": ComparedEvent,
    "written": WrittenEvent,
    "failure": FailureEvent,
    "end": EndEvent,
}


def is_known(name: str) -> bool:
    """Whether the keys of such events have types."""
    return name in _TYPES


def is_sound(event: dict[str, Any]) -> bool:
    """Whether every known key of the event has the right type."""
    expected = _TYPES.get(event["event"])
    if expected is None:
        return True
    try:
        msgspec.convert(event, expected)
    except (msgspec.ValidationError, RecursionError):
        return False
    return True
