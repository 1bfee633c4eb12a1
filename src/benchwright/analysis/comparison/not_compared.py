"""Values that cannot be compared, and whether that counts against the treatment: failed, missing, or not a number."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from benchwright.analysis.comparison.comparable import LaunchEndings, ending_of
from benchwright.analysis.comparison.sides import MeasuredMetric, MetricKey, Values, key_words
from benchwright.core.benchmark import Benchmark
from benchwright.core.metric import Direction, must_be_positive
from benchwright.core.run import Result
from benchwright.core.status import Status

Terms = tuple[str | None, Direction]  # unit, and which way is better
Chosen = tuple[str, str]  # a benchmark of the control and a metric
Metrics = Collection[str] | Collection[Chosen] | None


class NotCompared(NamedTuple):
    """`lost`: the treatment failed or lacks what the control has, or nothing can be concluded."""

    text: str
    lost: bool


class HasBenchmark(Protocol):
    @property
    def benchmark(self) -> Benchmark: ...


T = TypeVar("T", bound=HasBenchmark)


def matched(
    control: Sequence[T],
    treatment: Sequence[T],
    failed: Callable[[T, T], list[NotCompared]] = lambda before, after: [],
) -> tuple[list[tuple[T, T]], list[NotCompared]]:
    """Pairs of results with the same name, and what has no partner or `failed`."""
    if len(control) == len(treatment) == 1:
        return [(control[0], treatment[0])], failed(control[0], treatment[0])
    others = {r.benchmark.name: r for r in treatment}
    pairs: list[tuple[T, T]] = []
    missing: list[NotCompared] = []
    for before in control:
        found = others.pop(before.benchmark.name, None)
        if found is None:
            missing.append(NotCompared(f"{before.benchmark.name}: only in control", lost=True))
        else:
            missing += failed(before, found)
            pairs.append((before, found))
    missing += [NotCompared(f"{name}: only in treatment", lost=False) for name in others]
    return pairs, missing


NamedEndings = tuple[str, LaunchEndings]


def named_ending(result: Result) -> NamedEndings:
    return result.benchmark.name, ending_of(result)


def failures(before: NamedEndings, after: NamedEndings) -> list[NotCompared]:
    """Failures of either side: without a working control there is no comparison, and that is not a success."""
    if before[1].status is after[1].status is Status.SKIPPED:
        return [NotCompared(f"{before[0]}: skipped in both ({after[1].why})", lost=False)]
    same_name = before[0] == after[0]
    return [
        *_failures(*before, " in control" if same_name else "", of_treatment=False),
        *_failures(*after, " in treatment" if same_name else "", of_treatment=True),
    ]


def _failures(name: str, ending: LaunchEndings, where: str, *, of_treatment: bool) -> list[NotCompared]:
    if not ending.counted:
        return [NotCompared(f"{name}: nothing was measured{where} ({ending.why})", lost=True)]
    if ending.failed:
        bad = f"{ending.failed} of {ending.launches} launches failed{where} ({ending.first_failure})"
        return [NotCompared(f"{name}: {bad}; the others are compared", lost=of_treatment)]
    if ending.status is not Status.OK:
        return [NotCompared(f"{name}: {ending.status.value}{where} ({ending.why})", lost=of_treatment)]
    return []


def gaps(
    name: str, controls: Collection[MetricKey], treatments: Collection[MetricKey], needed: Collection[str]
) -> list[NotCompared]:
    """Needed metrics that only one side has. Both must have been measured: `failures` covers a side that was not at all."""
    found = []
    for key in dict.fromkeys((*controls, *treatments)):
        if key[0] in needed and (key not in controls or key not in treatments):
            lost = key in controls
            words = f"{name} {key_words(key)}"
            found.append(NotCompared(f"{words}: only in {'control' if lost else 'treatment'}", lost))
    return found


def unlike_sides(words: str, control: Sequence[Terms], treatment: Sequence[Terms]) -> NotCompared:
    """For sides with different units or directions."""
    by_unit = len({unit for unit, _ in (*control, *treatment)}) > 1
    ours, theirs = (" and ".join(dict.fromkeys(_words(*t, by_unit) for t in side)) for side in (control, treatment))
    return NotCompared(f"{words}: {ours} in control, {theirs} in treatment; not compared", lost=True)


def no_common_steps(words: str) -> NotCompared:
    return NotCompared(f"{words}: no step measured by every launch; not compared", lost=False)


def not_numbers(benchmark: str, key: MetricKey, measurement: MeasuredMetric, values: Values) -> list[NotCompared]:
    """Launches whose value cannot be compared: not finite, or not positive where it must be."""
    if are_positive(values.control) and are_positive(values.treatment):
        return []
    words = f"{benchmark} {key_words(key)}"
    found = []
    positive = measurement.source != "sampler" and must_be_positive(measurement.metric, measurement.unit) is not None
    for where, side in (("control", values.control), ("treatment", values.treatment)):
        odd = [v for v in side if not math.isfinite(v) or (positive and v <= 0)]
        if odd:
            text = f"{words}: {odd[0]:g} in {len(odd)} of {len(side)} launches of the {where}"
            found.append(NotCompared(text, lost=True))
    return found


def are_positive(values: Sequence[float]) -> bool:
    """And finite."""
    return all(map(math.isfinite, values)) and min(values) > 0


def _words(unit: str | None, direction: Direction, by_unit: bool) -> str:
    return f"measured in {unit or 'no unit'}" if by_unit else f"{direction.value} is better"


def is_part(key: MetricKey, controls: Iterable[MetricKey]) -> bool:
    """Whether it is one rank's share of a figure that the launch has as a whole."""
    metric, source, labels = key
    if not labels:
        return False
    wholes = (k for k in controls if k[:2] == (metric, source) and any(label == "ranks" for label, _ in k[2]))
    return any(label == "rank" for label, _ in labels) and any(wholes)


def is_bound(key: MetricKey) -> bool:
    """Whether only a bound is known: the same one on both sides says nothing about what lies below it."""
    return any(label == "bound" for label, _ in key[2])


def is_wanted(benchmark: str, metric: str, metrics: Metrics) -> bool:
    return metrics is None or metric in metrics or (benchmark, metric) in metrics
