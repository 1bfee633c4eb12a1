"""FAI-PEP's local reporter: each folder `…/<commit>/<n>` with its records is a run of one test.

A record with control values is two benchmarks that are compared with each other, as a run with `--info` has. What our own export
wrote beside FAI-PEP's fields is read back, too: warm-up samples and the launches.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchwright.compat.faipep.record_file import (
    META_FILE,
    RecordBody,
    is_record,
    meta_in,
    middle_of,
    numbers,
    records_in,
)
from benchwright.compat.faipep.records import our_unit
from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.errors import InvalidInput
from benchwright.core.machine import UNKNOWN
from benchwright.core.measurement import DELIVERED, Measurement
from benchwright.core.metric import Direction, check_aggregate
from benchwright.core.revision import CONTROL, TREATMENT
from benchwright.core.run import Launch, Result, Run
from benchwright.core.status import Status
from benchwright.kinds.spec.observers.identified import LATENCY
from benchwright.kinds.spec.observers.records import NET, ObserverRecord, number_in
from benchwright.kinds.spec.observers.series import series_of
from benchwright.kinds.spec.spec_test import ERROR
from benchwright.runs.foreign_json import ForeignFile, body_of, load
from benchwright.runs.imported_run import SOURCE, UNKNOWN_WORKLOAD, make_machine, make_run, moment

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


TOOL = "fai-pep"
_LEVELS = ("platform", "framework", "net_name", "metric", "identifier")
_LABELS = {
    "commit": "revision",
    "framework": "framework",
    "platform": "platform",
    "backend": "backend",
    "metric": "metric",
    "group": "group",
    "run_type": "run_type",
    "user_identifier": "user_identifier",
    "control_commit": "control_commit",
}
_ONE_LAUNCH = "fai-pep does not record which process took which value: they count as one launch"


class FaiPepImporter:
    """Reads a folder of records, or one record file alone."""

    name = TOOL

    def recognises(self, path: Path) -> bool:
        try:
            if not path.is_dir():
                return is_record(body_of(path))
            files = _files(path)
        except OSError:
            return False
        if path.name.startswith("."):  # .new-…: one that is being written
            return False
        return meta_in(path) is not None or any(is_record(body_of(file)) for file in files)

    def read(self, path: Path) -> list[Run]:
        if not path.is_dir():
            return _runs(load(path), path.parent, {path: records_in(path)}, [])
        found: dict[Path, list[RecordBody]] = {}
        notes, digests, changed = [], [], 0.0
        for file_path in _files(path):
            try:
                file = load(file_path)
                digests.append(f"{file_path.name}\0{file.digest}\n")
                changed = max(changed, file.changed)
                if file_path.name != META_FILE:
                    found[file_path] = records_in(file_path)
            except InvalidInput as error:
                notes.append(f"{file_path.name} was left out: {error.what}")
        if not found:
            raise InvalidInput(
                f"cannot be read: {notes[0] if notes else 'it has no record of fai-pep'}",
                where=str(path),
                remedy="give a folder such as …/<commit>/0",
            )
        digest = hashlib.sha256("".join(digests).encode()).hexdigest()
        return _runs(ForeignFile(path=str(path), body=None, digest=digest, changed=changed), path, found, notes)


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*.txt") if file.is_file() and not file.name.startswith("."))


def _runs(
    file: ForeignFile, folder: Path, found: Mapping[Path, Sequence[RecordBody]], notes: Sequence[str]
) -> list[Run]:
    said = meta_in(folder)
    meta = _texts(said) if said is not None else _meta_of_path(folder)
    remarks = list(notes)
    if said is None:
        remarks.append("there is no meta.txt that can be read: what was measured is known from the folders' names only")
    named = {str(path): records for path, records in found.items()}
    return runs_of(file, meta, _number(said or {}, "time"), named, remarks)


def runs_of(
    file: ForeignFile,
    meta: Mapping[str, str],
    when: float | None,
    found: Mapping[str, Sequence[RecordBody]],
    notes: Sequence[str],
) -> list[Run]:
    """The run of one test. `found`: its records, by where they stand; `when` it was made, in seconds since 1970."""
    naming = naming_of((record for records in found.values() for record in records), meta.get("net_name", ""))
    series = [
        side for where, records in found.items() for record in records for side in sides_of(record, naming, where)
    ]
    remarks = list(notes)
    remarks += [_ONE_LAUNCH] if not all(each.launches_known for each in series) else []
    remarks += [each.note for each in series if each.note]
    sides = {each.side for each in series}
    results: list[Result] = []
    for side in (CONTROL, TREATMENT) if CONTROL in sides else (TREATMENT,):
        own = [each for each in series if each.side == side]
        before = sum(len(result.launches) for result in results)
        results += [_result(meta, own, side if CONTROL in sides else None, before)] if own else []
    return make_run(
        file,
        TOOL,
        results,
        machine=make_machine(hostname=meta.get("platform_hash"), platform=meta.get("platform")),
        started=moment(when) if when else None,
        labels={ours: meta[theirs] for theirs, ours in _LABELS.items() if meta.get(theirs)},
        notes=remarks,
    )


def _result(meta: Mapping[str, str], series: Sequence[SideSeries], side: str | None, position: int) -> Result:
    """The measurements of every launch; records may be of different numbers of launches."""
    launches: dict[int, list[Measurement]] = {}
    printed = [each.printed for each in series if each.printed]
    for each in series:
        for number, measurement in enumerate(each.of_launches):
            same = [(m.metric, m.labels) for m in launches.setdefault(number, [])]
            if measurement is not None and (measurement.metric, measurement.labels) not in same:
                launches[number].append(measurement)
    name = _name(meta) + (f" {side}" if side else "")
    commit = meta.get("control_commit" if side == CONTROL else "commit")
    labels = {"model": meta.get("net_name"), "side": side, "commit": commit}
    command = meta.get("command")
    benchmark = Benchmark(
        name=name,
        workload=Command(argv=(command,), cwd=UNKNOWN, shell=True) if command else UNKNOWN_WORKLOAD,
        source=f"{TOOL} {name}",
        labels={key: value for key, value in labels.items() if value},
        pair=_name(meta) if side else "",
    )
    made = tuple(
        Launch(
            job=f"{name}.{n}",
            status=Status.OK,
            position=position + n,
            measurements=tuple(found),
            facts={"records": printed},
        )
        for n, found in sorted(launches.items())
    )
    return Result(benchmark=benchmark, status=Status.OK, launches=made)


def _name(meta: Mapping[str, str]) -> str:
    """As a run of the same specification is called."""
    model, identifier = meta.get("net_name") or "", meta.get("identifier") or ""
    if not identifier or identifier.startswith(model):
        return identifier or model or UNKNOWN
    return f"{model}-{identifier}"


def _texts(meta: Mapping[str, Any]) -> dict[str, str]:
    """Its texts; a command that is a list of words as one line."""
    found = {key: value for key, value in meta.items() if isinstance(value, str) and value}
    words = meta.get("command")
    if isinstance(meta.get("command_str"), str):
        found["command"] = meta["command_str"]
    elif isinstance(words, list) and all(isinstance(word, str) for word in words):
        found["command"] = shlex.join(words)
    return found


def _meta_of_path(folder: Path) -> dict[str, str]:
    """`<platform>/<framework>/<net_name>/<metric>/<identifier>/<Y>/<M>/<D>/<commit>/<n>`, if the path is of that form."""
    parts = Path(os.path.abspath(folder)).parts
    if len(parts) > 10 and all(part.isdigit() for part in (*parts[-5:-2], parts[-1])):
        return dict(zip(_LEVELS, parts[-10:-5], strict=True)) | {"commit": parts[-2]}
    return {"identifier": folder.name}


def _number(meta: Mapping[str, Any], key: str) -> float | None:
    value = meta.get(key)
    try:
        return float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        return None
