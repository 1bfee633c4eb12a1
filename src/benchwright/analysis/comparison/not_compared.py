"""Values that cannot be compared, and whether that counts against the treatment: failed, missing, or not a number."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple

from benchwright.analysis.comparison.sides import MetricKey, Side, Sides, Values, key_words
from benchwright.core.measurement import Measurement
from benchwright.core.metric import must_be_positive
from benchwright.core.run import Result, Run, why
from benchwright.core.status import Status

Chosen = tuple[str, str]  # a benchmark of the control and a metric
Metrics = Collection[str] | Collection[Chosen] | None


class NotCompared(NamedTuple):
    """`lost`: the treatment failed or lacks what the control has, or nothing can be concluded."""

    text: str
    lost: bool


def matched(control: Run, treatment: Run) -> tuple[list[tuple[Result, Result]], list[NotCompared]]:
    """Pairs of results with the same name, and what has no partner or failed."""
    if len(control.results) == len(treatment.results) == 1:
        pair = control.results[0], treatment.results[0]
        return [pair], failures(*pair)
    others = {r.benchmark.name: r for r in treatment.results}
    pairs: list[tuple[Result, Result]] = []
    missing: list[NotCompared] = []
    for before in control.results:
        found = others.pop(before.benchmark.name, None)
        if found is None:
            missing.append(NotCompared(f"{before.benchmark.name}: only in control", lost=True))
            continue
        missing += failures(before, found)
        pairs.append((before, found))
    missing += [NotCompared(f"{name}: only in treatment", lost=False) for name in others]
    return pairs, missing


def failures(before: Result, after: Result) -> list[NotCompared]:
    """Failures of either side: without a working control there is no comparison, and that is not a success."""
    if before.status is after.status is Status.SKIPPED:
        return [NotCompared(f"{before.benchmark.name}: skipped in both ({why(after)})", lost=False)]
    same_name = before.benchmark.name == after.benchmark.name
    return [
        *_failures(before, " in control" if same_name else "", of_treatment=False),
        *_failures(after, " in treatment" if same_name else "", of_treatment=True),
    ]


def _failures(result: Result, where: str, *, of_treatment: bool) -> list[NotCompared]:
    launches = [x for x in result.launches if not x.warmup]
    bad = [x for x in launches if x.status is not Status.OK]
    name = result.benchmark.name
    if not result.counted:
        return [NotCompared(f"{name}: nothing was measured{where} ({why(result)})", lost=True)]
    if bad:
        text = f"{name}: {len(bad)} of {len(launches)} launches failed{where} ({why(bad[0])}); the others are compared"
        return [NotCompared(text, lost=of_treatment)]
    if result.status is not Status.OK:
        return [NotCompared(f"{name}: {result.status.value}{where} ({why(result)})", lost=of_treatment)]
    return []


def gaps(
    before: Result, after: Result, controls: Sides, treatments: Sides, needed: Collection[str]
) -> list[NotCompared]:
    """Needed metrics that only one side has. `failures` covers a side that measured nothing at all."""
    if not before.counted or not after.counted:
        return []
    found = []
    for key in dict.fromkeys((*controls, *treatments)):
        if key[0] in needed and (key not in controls or key not in treatments):
            lost = key in controls
            words = f"{before.benchmark.name} {key_words(key)}"
            found.append(NotCompared(f"{words}: only in {'control' if lost else 'treatment'}", lost))
    return found


def unlike_sides(words: str, control: Side, treatment: Side) -> NotCompared:
    """For sides with different units or directions."""
    both = [list(side.launches.values()) for side in (control, treatment)]
    by_unit = len({m.unit for side in both for m in side}) > 1
    ours, theirs = (" and ".join(dict.fromkeys(_terms(m, by_unit) for m in side)) for side in both)
    return NotCompared(f"{words}: {ours} in control, {theirs} in treatment; not compared", lost=True)


def no_common_steps(words: str) -> NotCompared:
    return NotCompared(f"{words}: no step measured by every launch; not compared", lost=False)


def not_numbers(words: str, measurement: Measurement, values: Values) -> list[NotCompared]:
    """Launches whose value cannot be compared: not finite, or not positive where it must be."""
    found = []
    positive = measurement.source != "sampler" and must_be_positive(measurement.metric, measurement.unit) is not None
    for where, side in (("control", values.control), ("treatment", values.treatment)):
        odd = [v for v in side if not math.isfinite(v) or (positive and v <= 0)]
        if odd:
            text = f"{words}: {odd[0]:g} in {len(odd)} of {len(side)} launches of the {where}"
            found.append(NotCompared(text, lost=True))
    return found


def _terms(measurement: Measurement, by_unit: bool) -> str:
    return f"measured in {measurement.unit or 'no unit'}" if by_unit else f"{measurement.direction.value} is better"


def is_part(key: MetricKey, controls: Sides) -> bool:
    """Whether it is one rank's share of a figure that the launch has as a whole."""
    metric, source, labels = key
    wholes = (k for k in controls if k[:2] == (metric, source) and any(label == "ranks" for label, _ in k[2]))
    return any(label == "rank" for label, _ in labels) and any(wholes)


def is_bound(key: MetricKey) -> bool:
    """Whether only a bound is known: the same one on both sides says nothing about what lies below it."""
    return any(label == "bound" for label, _ in key[2])


def is_wanted(benchmark: str, metric: str, metrics: Metrics) -> bool:
    return metrics is None or metric in metrics or (benchmark, metric) in metrics
