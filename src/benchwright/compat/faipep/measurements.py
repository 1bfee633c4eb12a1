"""Records as Measurements: the treatment's, and the control's where a record has both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from benchwright.compat.faipep.record_file import RecordBody, middle_of, numbers
from benchwright.compat.faipep.records import our_unit
from benchwright.core.errors import InvalidInput
from benchwright.core.measurement import DELIVERED, Measurement
from benchwright.core.metric import Direction, check_aggregate
from benchwright.core.revision import CONTROL, TREATMENT
from benchwright.kinds.spec.observers.identified import LATENCY
from benchwright.kinds.spec.observers.records import NET, ObserverRecord, number_in
from benchwright.kinds.spec.observers.series import series_of
from benchwright.kinds.spec.spec_test import ERROR
from benchwright.runs.imported_run import SOURCE

_NO_VALUES = "some records have statistics only: their median stands for the values"


class SideSeries(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of one side, launch by launch. `launches_known`: the record says which launch took which values.

    `printed`: how FAI-PEP calls it, as a run of a specification keeps it.
    """

    side: str
    of_launches: tuple[Measurement | None, ...]
    printed: dict[str, object]
    launches_known: bool = False
    note: str | None = None


class _Launch(msgspec.Struct, frozen=True):
    """One launch according to our export."""

    values: int
    warmup_values: list[Any] = []
    value: Any = None


class _Own(msgspec.Struct, frozen=True):
    """The part of a record that our export adds."""

    metric: str
    launches: list[_Launch]
    labels: dict[str, str] = {}
    direction: Direction = Direction.NEITHER
    aggregate: str = "median"
    control_launches: list[_Launch] = []
    printed_summary: bool = False  # the statistics are the program's own


Naming = Mapping[tuple[str, str, str | None], Measurement]


def naming_of(records: Iterable[RecordBody], model: str) -> Naming:
    """Our names for records of this type, metric and unit; only together do they show what an operator is."""
    made = series_of([_observer_record(record) for record in records], model)
    return {(series.type, series.metric, series.measurement.unit): series.measurement for series in made}


def sides_of(record: RecordBody, naming: Naming, where: str) -> Iterator[SideSeries]:
    """One or two; InvalidInput for values that are not numbers."""
    if (error := _golden_error(record)) is not None:
        yield SideSeries(side=TREATMENT, of_launches=(error,), printed={}, launches_known=True)
        return
    own = _own(record)
    sides = [(TREATMENT, "values", record.values, record.summary)]
    if record.control_values or record.control_summary:
        sides.append((CONTROL, "control_values", record.control_values, record.control_summary))
    for side, key, values, summary in sides:
        samples = numbers(values, record.places, what=key, where=where)
        stands = middle_of(summary) if not samples else None
        if stands is not None:
            samples = numbers([stands], record.places, what="summary", where=where)
        if not samples:
            continue
        named = _named(record, own, naming)
        printed = {
            "type": record.type,
            "metric": record.metric,
            "unit": record.unit,
            "as": named.metric,
            **record.about,
        }
        if own is not None and own.printed_summary:
            printed["summary"] = summary
        launches = () if own is None else own.launches if side == TREATMENT else own.control_launches
        known = stands is None and sum(max(0, each.values) for each in launches) == len(samples)
        split = _split(record, named, launches, samples, where) if known else (_with(named, samples),)
        yield SideSeries(
            side=side,
            of_launches=split,
            printed={key: value for key, value in printed.items() if value is not None},
            launches_known=known,
            note=None if stands is None else _NO_VALUES,
        )


def _golden_error(record: RecordBody) -> Measurement | None:
    """Of an output that was compared with a golden one there are statistics only: of both, and of the differences."""
    ends = [number_in(record.diff_summary.get(key)) for key in ("p0", "p100")]
    if record.values or record.control_values or record.metric not in (None, ERROR) or None in ends:
        return None
    return Measurement(
        metric="error.max_abs",
        unit=None,
        direction=Direction.LOWER,
        samples=(max(abs(end) for end in ends if end is not None),),
        source=SOURCE,
        labels={"output": record.type},
    )


def _own(record: RecordBody) -> _Own | None:
    try:
        own = msgspec.convert(record.benchwright, _Own)
        if own.aggregate != DELIVERED:
            check_aggregate(own.aggregate)
    except (msgspec.ValidationError, OverflowError, InvalidInput):
        return None  # another tool's, or damaged: the record itself says enough
    return own


def _split(
    record: RecordBody, named: Measurement, launches: Sequence[_Launch], samples: Sequence[float], where: str
) -> tuple[Measurement | None, ...]:
    found: list[Measurement | None] = []
    taken = 0
    for launch in launches:
        count = max(0, launch.values)
        before = numbers(launch.warmup_values, record.places, what="warmup_values", where=where)
        whole = None if launch.value is None else numbers(launch.value, record.places, what="value", where=where)[0]
        made = _with(named, samples[taken : taken + count])
        made = msgspec.structs.replace(made, warmup_samples=tuple(before), value=whole)
        found.append(made if count or before else None)
        taken += count
    return tuple(found)


def _with(named: Measurement, samples: Sequence[float]) -> Measurement:
    return msgspec.structs.replace(named, samples=tuple(samples))


def _named(record: RecordBody, own: _Own | None, naming: Naming) -> Measurement:
    """Without samples."""
    if own is None:
        printed = _observer_record(record)
        return msgspec.structs.replace(naming[printed.type, printed.metric, printed.unit], source=SOURCE)
    return Measurement(
        metric=own.metric,
        unit=our_unit(record.unit or ""),
        direction=own.direction,
        samples=(),
        source=SOURCE,
        aggregate=own.aggregate,
        labels=own.labels,
    )


def _observer_record(record: RecordBody) -> ObserverRecord:
    return ObserverRecord(
        type=record.type.strip() or NET,
        metric=(record.metric or "").strip() or LATENCY,
        unit=our_unit(record.unit or ""),
        values=(),
        line=0,
    )
