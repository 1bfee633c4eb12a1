"""One metric of a test in FAI-PEP's form: a record, with its values in the unit the program printed.

Besides the fields of FAI-PEP a record has `benchwright`, which holds what those cannot: warm-up samples, which launch took
which values, our name and labels. Other tools skip it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

import msgspec

from benchwright.core.measurement import Measurement
from benchwright.core.metric import OURS
from benchwright.core.run import Launch, Result
from benchwright.kinds.spec.observers.identified import LATENCY
from benchwright.kinds.spec.observers.records import NET, number_in
from benchwright.kinds.spec.observers.series import OF_OP, OP, OP_TIME
from benchwright.kinds.spec.results.statistics import ALWAYS, printed_summary, statistic
from benchwright.kinds.spec.spec_test import ERROR

USUAL = ("mean", "p0", "p10", "p50", "p90", "p100", "stdev", "MAD", "cv")
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?|100)")


def summary_of(
    values: Sequence[float], wanted: Sequence[str] = (), printed: Mapping[str, float] = {}
) -> dict[str, float | None]:
    """Statistics the program `printed` itself, else the usual ones, or those `wanted` and the median.

    None where one has no value; empty for no values.
    """
    if printed:
        return dict(printed)
    if not values:
        return {}
    names = dict.fromkeys([*wanted, ALWAYS]) if wanted else USUAL
    return {name: _statistic(name, values) for name in names}


class RecordSide(NamedTuple):
    """The values of treatment or control, and the statistics that its program printed itself."""

    values: Sequence[float]
    printed: Mapping[str, float] = {}

    def statistic(self, name: str) -> float | None:
        return self.printed.get(name) if self.printed else _statistic(name, self.values)


def difference(treatment: RecordSide, control: RecordSide, names: Iterable[str]) -> dict[str, float | None]:
    """Treatment minus control. The p10 of the difference is the treatment's p10 minus the control's p90, and so on."""
    found: dict[str, float | None] = {}
    for name in names:
        match = _PERCENTILE.fullmatch(name)
        ours = treatment.statistic(name)
        theirs = control.statistic(f"p{100 - float(match[1]):g}" if match else name)
        found[name] = None if ours is None or theirs is None else ours - theirs
    return found


def _statistic(name: str, values: Sequence[float]) -> float | None:
    if not all(map(math.isfinite, values)):
        return None
    try:
        found = statistic(name, values)
    except (ValueError, OverflowError):  # one that only its own tool knows, or too large a number
        return None
    return found if math.isfinite(found) else None


Number = float | Decimal | str  # text: one that is not finite
Record = dict[str, object]
OWN = "benchwright"
_PART = (OP, "type", "output")  # labels that name a part of the model
_ABOUT = ("info_string", "table_name", "custom_output")
# Printed unit → the power of ten that a time in seconds is multiplied by.
PLACES = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 0),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 3),
    **dict.fromkeys(("us", "usec", "µs", "μs", "microsecond", "microseconds"), 6),
    **dict.fromkeys(("ns", "nsec", "nanosecond", "nanoseconds"), 9),
}


class RecordSeries(msgspec.Struct, frozen=True, kw_only=True):
    """All samples of one metric of a benchmark, launch by launch, and how the program called it."""

    first: Measurement
    of_launches: tuple[Measurement | None, ...]
    type: str
    metric: str
    unit: str
    details: tuple[Mapping[str, object], ...] = ()  # what was printed about it, by launch

    @property
    def about(self) -> dict[str, object]:
        return {name: self.details[0][name] for name in _ABOUT if self.details and name in self.details[0]}

    @property
    def printed(self) -> dict[str, float]:
        """The program's own statistics."""
        return printed_summary(self.details)

    @property
    def runs(self) -> int | float:
        """As the program printed them, else the number of values."""
        counts = [number_in(each.get("num_runs")) for each in self.details]
        known = [count for count in counts if count is not None]
        total = math.fsum(known) if len(known) == len(counts) and known else len(self.samples)
        return int(total) if total == int(total) else total

    @property
    def key(self) -> tuple[str, str]:
        return self.type, self.metric

    @property
    def places(self) -> int:
        return PLACES.get(self.unit.lower(), 0) if self.first.unit == "s" else 0

    @property
    def samples(self) -> list[float]:
        return [value for m in self.of_launches if m is not None for value in m.samples]

    def in_its_unit(self, values: Iterable[float]) -> list[Number]:
        return [scaled(value, self.places) for value in values]


def scaled(value: float, places: int) -> Number:
    """`value` × 10^places, exactly: the digits of a number in seconds stay those of the same time in microseconds."""
    if not math.isfinite(value):
        return str(float(value))
    return Decimal(repr(float(value))).scaleb(places) if places else float(value)


def series_in(result: Result) -> list[RecordSeries]:
    """One for each metric that the program reported; what benchwright itself measured only where that is all there is."""
    found: dict[tuple[str, str | None, tuple[tuple[str, str], ...]], list[Measurement | None]] = {}
    launches = result.counted
    for number, launch in enumerate(launches):
        for m in launch.measurements:
            key = (m.metric, m.unit, tuple(sorted(m.labels.items())))
            found.setdefault(key, [None] * len(launches))[number] = m
    details = [each for (name, _, _), each in found.items() if not name.startswith(OURS)]
    return [_series(each, launches) for each in details or found.values()]


def record_of(series: RecordSeries, control: RecordSeries | None, *, statistics: Sequence[str] = ()) -> Record:
    """`control`: the same metric of the other side."""
    values = [float(each) for each in series.in_its_unit(series.samples)]
    record: Record = {
        "type": series.type,
        "metric": series.metric,
        "unit": series.unit,
        "values": series.in_its_unit(series.samples),
        "num_runs": series.runs,
        "summary": (summary := summary_of(values, statistics, series.printed)),
        **series.about,
    }
    own: Record = {
        "metric": series.first.metric,
        "labels": dict(series.first.labels),
        "direction": series.first.direction.value,
        "aggregate": series.first.aggregate,
        "launches": _launches(series),
        **({"printed_summary": True} if series.printed else {}),
    }
    if control is not None and control.samples and values:
        others = [float(scaled(each, series.places)) for each in control.samples]
        record["control_values"] = series.in_its_unit(control.samples)
        record["control_summary"] = summary_of(others, statistics, control.printed)
        sides = RecordSide(values, series.printed), RecordSide(others, control.printed)
        record["diff_summary"] = difference(*sides, summary)
        own["control_launches"] = _launches(control)
    return record | {OWN: own}


def golden_records(result: Result) -> list[Record]:
    """Of each output that was compared with a golden one: its numbers, the golden's and their difference, element by element."""
    details = [launch.facts.get("goldens") or {} for launch in result.counted]
    return [
        {"type": name, "metric": ERROR, "unit": "", **found["statistics"]}
        for name, found in (details[-1] if details else {}).items()
        if found.get("statistics")
    ]


def _launches(series: RecordSeries) -> list[Record]:
    """How many of the values each launch took, and what is not among them."""
    details: list[Record] = []
    for m in series.of_launches:
        one: Record = {"values": 0 if m is None else len(m.samples)}
        if m is not None and m.warmup_samples:
            one["warmup_values"] = series.in_its_unit(m.warmup_samples)
        if m is not None and m.value is not None:
            one["value"] = scaled(m.value, series.places)
        details.append(one)
    return details


def _series(of_launches: Sequence[Measurement | None], launches: Sequence[Launch]) -> RecordSeries:
    first = next(m for m in of_launches if m is not None)
    every = tuple(_as_printed(m, x) or {} for x, m in zip(launches, of_launches, strict=True) if m is not None)
    details = next((each for each in every if each), {})
    part = next((first.labels[name] for name in _PART if name in first.labels), NET)
    rest = [f" {key}={value}" for key, value in sorted(first.labels.items()) if key not in _PART]
    metric = LATENCY if first.metric == OP_TIME else first.metric.removeprefix(OF_OP)
    return RecordSeries(
        first=first,
        of_launches=tuple(of_launches),
        type=str(details.get("type") or part) + "".join(rest),
        metric=str(details.get("metric") or metric),
        unit=str(details.get("unit") or first.unit or ""),
        details=every,
    )


def _as_printed(m: Measurement, launch: Launch) -> Mapping[str, object] | None:
    """The gatherer's note about the records that became this measurement."""
    part = m.labels.get(OP, m.labels.get("type"))
    for details in launch.facts.get("records") or ():
        if details.get("as") == m.metric and (part is None or details.get("type") == part):
            found: Mapping[str, object] = details
            if our_unit(str(details.get("unit") or "")) == m.unit:
                return found
    return None


def our_unit(printed: str) -> str | None:
    """Times are in seconds."""
    unit = printed.strip()
    plain = unit.lower()
    return "s" if plain in PLACES else "%" if plain in ("percent", "%") else unit or None
