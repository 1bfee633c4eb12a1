"""Records as Measurements: every value of one metric of one part of the model, in the order they were printed.

The net, or the model by its name, has its metrics as they are. Other types are operators: their times are `op.time` with
the label `op`, as a profiled model's are. Times are in seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction, guess_direction
from benchwright.kinds.spec.observers.identified import LATENCY
from benchwright.kinds.spec.observers.records import NET, ObserverRecord
from benchwright.record.loops.steps import samples_of

OP, OF_OP, OP_TIME = "op", "op.", "op.time"
_PER_SECOND = {
    1e9: ("ns", "nsec", "nanosecond", "nanoseconds"),
    1e6: ("us", "usec", "µs", "μs", "microsecond", "microseconds"),
    1e3: ("ms", "msec", "millisecond", "milliseconds"),
    1.0: ("s", "sec", "secs", "second", "seconds"),
}
_DIVISORS = {unit: divisor for divisor, units in _PER_SECOND.items() for unit in units}
_TIMES = (LATENCY, "delay", "time")  # metrics of an operator that are its time
_BETTER_IF_MORE = ("corrects", "accuracy", "precision", "recall")


class ObservedSeries(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of one part: its measurement, and what was printed about it."""

    type: str
    metric: str  # as printed
    unit: str | None  # as printed
    measurement: Measurement
    about: dict[str, object] = {}


def series_of(records: Iterable[ObserverRecord], model: str = "") -> list[ObservedSeries]:
    """One for each type, metric and unit, in the order in which they first appear."""
    groups: dict[tuple[str, str, str | None], list[ObserverRecord]] = {}
    for record in records:
        groups.setdefault((record.type, record.metric, _our_unit(record.unit)), []).append(record)
    own = _own_types((kind for kind, _, _ in groups), model)
    timed = {kind for kind, metric, unit in groups if kind not in own and _is_time(metric, unit)}
    taken: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    found = []
    for (kind, metric, unit), same in groups.items():
        name, labels = _named(kind, metric, unit, own, timed)
        if (name, tuple(labels.items())) in taken:  # the same metric in two units that cannot be converted
            labels = labels | {"unit": unit or "none"}
        taken.add((name, tuple(labels.items())))
        about = _about([record for record in same if not record.warmup] or same)
        made = _measurement(name, metric, unit, labels, same)
        found.append(ObservedSeries(type=kind, metric=metric, unit=same[0].unit, measurement=made, about=about))
    return found


def _about(records: Sequence[ObserverRecord]) -> dict[str, object]:
    """Text printed beside the values; a summary only if it is of all of them."""
    about = {key: value for record in records for key, value in record.about.items()}
    return about if len(records) == 1 else {key: value for key, value in about.items() if key != "summary"}


def _own_types(types: Iterable[str], model: str) -> frozenset[str]:
    """The record types of the model itself: the net's, else the one named like the model."""
    known = set(types)
    net = {kind for kind in known if kind.upper() == NET}
    return frozenset(net or ({model} & known))


def _named(
    kind: str, metric: str, unit: str | None, own: frozenset[str], timed: set[str]
) -> tuple[str, dict[str, str]]:
    if kind in own:
        return metric, {}
    if kind not in timed:
        return metric, {"type": kind}
    name = OP_TIME if metric.lower() in _TIMES else f"{OF_OP}{metric}"
    return name, {OP: kind}


def _measurement(
    name: str, metric: str, unit: str | None, labels: dict[str, str], same: Sequence[ObserverRecord]
) -> Measurement:
    samples = [in_our_unit(value, r.unit) for r in same if not r.warmup for value in r.values]
    before = [in_our_unit(value, r.unit) for r in same if r.warmup for value in r.values]
    # Of 0s and 1s, a program's own percentage is the number. Of times, the samples are: summaries may be rounded.
    own = [r.stands for r in same if r.stands is not None] if unit != "s" else []
    if len(own) == len(same) > 1:
        samples, own = own, []
    better = any(word in metric.lower() for word in _BETTER_IF_MORE)
    return Measurement(
        metric=name,
        unit=unit,
        direction=Direction.HIGHER if better else guess_direction(metric, unit),
        samples=samples_of(samples),
        warmup_samples=samples_of(before),
        source="log",
        labels=labels,
        value=own[0] if len(own) == len(same) else None,
    )


def _is_time(metric: str, unit: str | None) -> bool:
    return unit == "s" or metric.lower() in _TIMES


def _our_unit(printed: str | None) -> str | None:
    if printed is None:
        return None
    return "s" if printed.lower() in _DIVISORS else "%" if printed.lower() in ("percent", "%") else printed


def in_our_unit(value: float, printed: str | None) -> float:
    return value / _DIVISORS.get((printed or "").lower(), 1.0)
