"""Reports of FAI-PEP's harness about a test: where, when and of what it was measured, and a record for each metric."""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import datetime

import msgspec

from benchwright.compat.faipep.names import platform_of
from benchwright.compat.faipep.records import Record, golden_records, record_of, series_in
from benchwright.core.benchmark import Benchmark
from benchwright.core.revision import CONTROL, RevisionInfo
from benchwright.core.run import Result, Run, why
from benchwright.core.secrets import redact_text
from benchwright.core.status import Status
from benchwright.kinds.registry import kind_of
from benchwright.kinds.spec.spec_test import GENERIC, spec_of
from benchwright.report.base import Report
from benchwright.report.text.commands import command_line, words_of
from benchwright.runs.read_run import commands_of

NO_COMMIT = "interactive"  # FAI-PEP's own word for a program without a commit
_ENCODER = msgspec.json.Encoder(decimal_format="number", order="sorted")


class HarnessReport(msgspec.Struct, frozen=True, kw_only=True):
    """One test. `date`: the commit's time, else when it was measured, in seconds since 1970."""

    meta: dict[str, object]
    records: tuple[Record, ...]
    date: float


class HarnessReports(msgspec.Struct, frozen=True, kw_only=True):
    """Reports of a run; `left_out`: tests that have none, and why."""

    reports: tuple[HarnessReport, ...]
    left_out: tuple[str, ...] = ()


class FaiPepReporter:
    """A line of JSON for each test, as FAI-PEP's simple reporters print: `{"meta": …, "data": {"NET latency": …}}`."""

    name = "fai-pep"

    def render(self, report: Report) -> str:
        found = reports_of(report.run)
        lines = [_line(each) for each in found.reports]
        return "".join(f"{line}\n" for line in lines) or f"{json.dumps({'left_out': list(found.left_out)})}\n"


def encoded(value: object) -> bytes:
    """As JSON; numbers of any length stay exact."""
    return _ENCODER.encode(value)


def reports_of(run: Run, only: Collection[str] | None = None) -> HarnessReports:
    """A control is part of its treatment's report. `only`: of these benchmarks."""
    controls: dict[str, Result] = {}
    reports, left_out = [], []
    commands = commands_of(run, kind_of)
    for result in run.results:
        if result.benchmark.pair and _side(result.benchmark) == CONTROL:
            controls[result.benchmark.pair] = result  # it comes before its treatment
            continue
        if only is not None and result.benchmark.name not in only:
            continue
        if result.status is not Status.OK or not result.counted:
            left_out.append(f"{result.benchmark.name}: {why(result)}")
            continue
        control = controls.get(result.benchmark.pair)
        if control is not None and control.status is not Status.OK:
            left_out.append(f"{control.benchmark.name}: {why(control)}")
            control = None
        ran = commands.get(result.benchmark.name)
        command = _written(result.benchmark) if ran is None else command_line(ran)
        reports.append(_report(run, result, control, command))
    return HarnessReports(reports=tuple(reports), left_out=tuple(redact_text(line) for line in left_out))


def _side(benchmark: Benchmark) -> str | None:
    return None if (test := spec_of(benchmark)) is None else test.side


def _report(run: Run, result: Result, control: Result | None, command: str) -> HarnessReport:
    test = spec_of(result.benchmark)
    statistics = () if test is None else test.statistics
    others = {} if control is None else {(s.first.metric, _labels(s.first.labels)): s for s in series_in(control)}
    records = []
    for series in series_in(result):
        record = record_of(
            series, others.get((series.first.metric, _labels(series.first.labels))), statistics=statistics
        )
        if test is not None and test.is_regressed(*series.key):
            record["regressed"] = 1
        records.append(record)
    records += golden_records(result)
    revision = _revision(result.benchmark)
    when = _seconds(run.started)
    date = revision.commit_time if revision.commit_time is not None else when
    meta = {"command": command} | _meta(run, result, control, revision)
    return HarnessReport(meta=meta, records=tuple(records), date=date or 0.0)


def _labels(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


def _meta(run: Run, result: Result, control: Result | None, revision: RevisionInfo) -> dict[str, object]:
    benchmark = result.benchmark
    test, labels = spec_of(benchmark), run.labels | benchmark.labels
    meta: dict[str, object | None] = {
        "backend": labels.get("platform") or (test.backend if test else None) or run.machine.system.lower(),
        "time": _seconds(run.started),
        "framework": (test and (test.framework or test.format)) or benchmark.kind,
        "platform": platform_of(run.machine),
        "platform_hash": run.machine.hostname,
        "user_identifier": labels.get("user_identifier"),
        "net_name": test.model if test else benchmark.name,
        "group": test.group if test else labels.get("group"),
        "metric": test.metric if test else GENERIC,
        "identifier": test.identifier if test else benchmark.name,
        "commit": revision.commit or labels.get("revision") or NO_COMMIT,
        "commit_time": revision.commit_time,
        "run_type": test.run_type if test else "benchmark",
        "user": _owner(run.folder),
        "run": run.id,  # ours
    }
    if control is not None:
        other = _revision(control.benchmark)
        meta |= {"control_commit": other.commit or NO_COMMIT, "control_commit_time": other.commit_time}
    return {name: value for name, value in meta.items() if value is not None}


def _revision(benchmark: Benchmark) -> RevisionInfo:
    return ((test := spec_of(benchmark)) and test.revision) or RevisionInfo()


def _written(benchmark: Benchmark) -> str:
    """Its command as it was written, for a run without a plan."""
    test = spec_of(benchmark)
    return redact_text("; ".join(test.commands)) if test and test.commands else command_line(words_of(benchmark))


def _seconds(started: str) -> float | None:
    with suppress(ValueError):
        return datetime.fromisoformat(started).timestamp()
    return None


def _owner(folder: str) -> str | None:
    """Who measured it: the owner of the run's folder."""
    with suppress(OSError, KeyError):
        return pwd.getpwuid(os.stat(folder).st_uid).pw_name
    return None


def _line(report: HarnessReport) -> str:
    data: dict[str, Record] = {}
    for record in report.records:
        key = f"{record['type']} {record['metric']}"
        data[key if key not in data else f"{key} #{len(data)}"] = record
    return encoded({"meta": report.meta, "data": data}).decode()
