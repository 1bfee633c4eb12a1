"""One benchmark on a page: its charts, its launches, all its metrics, how it was run and what it printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.job import readable_job
from benchwright.core.machine import Machine
from benchwright.core.quantities import format_bytes, format_duration
from benchwright.core.run import Launch, Result, Run
from benchwright.core.secrets import redact
from benchwright.core.status import Status
from benchwright.core.summary import WORDS, Summary, headline_of
from benchwright.report.base import Report
from benchwright.report.document import Cell, Column, Field, ReportTable, table_of, word
from benchwright.report.html.pages import data_block
from benchwright.report.html.sample_blocks import packed
from benchwright.report.notes import result_notes
from benchwright.report.screen import launches_words
from benchwright.report.tables.percentiles import percentiles_table
from benchwright.report.tables.results import BETTER, best_words, spread_cell
from benchwright.report.text.commands import command_text
from benchwright.report.text.metrics import MEMORY, efficiency_lines, metric_name
from benchwright.report.text.numbers import counted, format_value, percent, short_unit
from benchwright.report.text.settings import placement_words, stop_words, warmup_words

_MOST_COLUMNS = 4  # metrics in the table of launches; the others are in the table of all metrics
_FEW_LAUNCHES = 12
Pair = tuple[str, str, bool]  # a name, what it is, and whether that is code


class BenchmarkView(NamedTuple):
    number: int
    name: str
    status: str
    headline: str
    open: bool
    remarks: list[str]
    information: list[str]  # no reason for doubt
    efficiency: list[str]
    data: str  # for the charts, which the page's script draws when they come into view
    tables: list[ReportTable]
    how: list[Pair]
    logs: list[tuple[str, str]]


def benchmark_view(number: int, report: Report, logs: Mapping[str, str], *, opened: bool) -> BenchmarkView:
    result = report.run.results[number]
    name = result.benchmark.name
    summaries = list(report.summaries.get(name, ()))
    shown = report.headline(number)
    interval_s = report.options.sample_interval if report.options else None
    data = packed(result, summaries, shown, interval_s)
    notes = result_notes(result)
    why = [result.detail] if result.status is not Status.OK and result.detail else []
    return BenchmarkView(
        number=number,
        name=name,
        status=result.status.value,
        headline=_headline(result, summaries, shown),
        open=opened,
        remarks=[*why, *(str(note) for note in notes if note.severity != "info")],
        information=[str(note) for note in notes if note.severity == "info"],
        efficiency=efficiency_lines(report.efficiency.get(name, ())),
        data=data_block(data) if data else "",
        tables=[_launches(result, shown), _all_metrics(summaries), percentiles_table(summaries)],
        how=_how(result.benchmark, report),
        logs=[(readable_job(x.job), logs[x.job]) for x in result.launches if x.job in logs],
    )


def _headline(result: Result, summaries: list[Summary], shown: Sequence[Summary]) -> str:
    first = [s for s in shown[:1] if s.metric != "process.duration"]
    parts = [f"{metric_name(s.metric, s.labels)} {format_value(s.value, short_unit(s.unit))}" for s in first]
    parts += [launches_words(result, summaries)] if result.counted else []
    parts += [f"overlap {percent(result.overlap)}"] if result.overlap is not None else []
    return " · ".join(parts) or (result.detail or "nothing measured")


def _launches(result: Result, shown: Sequence[Summary]) -> ReportTable:
    metrics = [s for s in shown if s.metric != "process.duration"][:_MOST_COLUMNS]
    fields: list[Field[Launch]] = [
        Field(Column("launch"), lambda x: word(readable_job(x.job))),
        Field(Column("status", setting=True), lambda x: word(x.status.value, mark=x.status.value)),
        *(Field(Column(metric_name(s.metric, s.labels), right=True), _value_of(s)) for s in metrics),
        Field(
            Column("time", right=True), lambda x: word("" if x.duration_s is None else format_duration(x.duration_s))
        ),
        Field(Column("memory", right=True), _memory),
        Field(Column("samples", right=True, setting=True), lambda x: _samples(x, metrics[:1])),
        Field(Column("notes", drop_priority=1), _remarks),
    ]
    return table_of(fields, result.launches, title="Launches", opened=len(result.launches) <= _FEW_LAUNCHES)


def _value_of(summary: Summary) -> Callable[[Launch], Cell]:
    """The launch's number: summaries hold one for each launch that counts and has the metric."""
    values: Iterator[float] = iter(summary.values)

    def cell(launch: Launch) -> Cell:
        has = any(m.metric == summary.metric and m.labels == summary.labels and m.samples for m in launch.measurements)
        if not launch.counts or not has:
            return Cell()
        return Cell(format_value(next(values), short_unit(summary.unit)))

    return cell


def _memory(launch: Launch) -> Cell:
    metric = headline_of([launch])
    peak = launch.measurement(metric) if metric else None
    if peak is None or not peak.samples:
        return Cell()
    bound = "≤ " if "bound" in peak.labels else ""
    return Cell(f"{bound}{format_value(peak.samples[0], peak.unit)} {WORDS[peak.metric]}")


def _samples(launch: Launch, first: Sequence[Summary]) -> Cell:
    names = {s.metric for s in first} or {"process.duration"}
    of_first = [m for m in launch.measurements if m.metric in names]
    warm = sum(len(m.warmup_samples) for m in of_first)
    return Cell(f"{sum(len(m.samples) for m in of_first):,}" + (f" (+ {warm:,} warm-up)" if warm else ""))


def _remarks(launch: Launch) -> Cell:
    remarks = [launch.detail or "", *map(str, launch.notes)]
    if launch.exit_code and "exit code" not in remarks[0]:
        remarks.insert(0, f"exit code {launch.exit_code}")
    return Cell("; ".join(filter(None, remarks)))


def _all_metrics(summaries: Sequence[Summary]) -> ReportTable:
    fields: list[Field[Summary]] = [
        Field(Column("metric"), lambda s: word(metric_name(s.metric, s.labels), hint=s.metric)),
        Field(Column("value", right=True), lambda s: word(format_value(s.value, short_unit(s.unit)))),
        Field(Column("± 95 %", right=True), _spread),
        Field(Column("best", right=True), lambda s: word(best_words(s))),
        Field(Column("launches", right=True, setting=True), lambda s: word(f"{s.launches:,}")),
        Field(Column("better", drop_priority=1), lambda s: word(BETTER[s.direction])),
        Field(Column("from", setting=True), lambda s: word(s.source)),
    ]
    return table_of(fields, summaries, title="All metrics", opened=False, notes=(f"{MEMORY}.",))


def _spread(summary: Summary) -> Cell:
    """Without the mark: what is beside the point may be noisy."""
    return msgspec.structs.replace(spread_cell(summary), mark="") if summary.interval is not None else Cell()


def _how(benchmark: Benchmark, report: Report) -> list[Pair]:
    rows: list[Pair] = [
        ("Command", command_text(benchmark, report), True),
        ("Folder", benchmark.workload.cwd, True),
        ("Read from", benchmark.source, False),
    ]
    if benchmark.env:
        kept = redact({k: v for k, v in benchmark.env.items() if v is not None})
        changes = [f"{k}={v}" for k, v in kept.items()]
        changes += [f"{k} removed" for k, v in benchmark.env.items() if v is None]
        rows.append(("Environment", "\n".join(changes), True))
    rows.append(("Stops", stop_words(benchmark.stop), False))
    rows.append(("Warm-up", warmup_words(benchmark.warmup), False))
    if benchmark.timeout_s is not None:
        rows.append(("Time limit", format_duration(benchmark.timeout_s), False))
    if placement := placement_words(benchmark.placement):
        rows.append(("Placement", placement, False))
    for spec in benchmark.metrics:
        rows.append((f"Metric {spec.name}", f"{spec.pattern}  ({spec.kind.replace('_', ' ')}, {spec.aggregate})", True))
    rows += [(f"Parameter {k}", v, False) for k, v in benchmark.parameters.items()]
    return rows + [(f"Label {k}", v, False) for k, v in benchmark.labels.items()]


# A machine, in one line and in pairs of name and value.


def machine_line(machine: Machine) -> str:
    parts = [machine.hostname, f"{machine.cpu}, {counted(machine.cores, 'core')}", format_bytes(machine.memory_bytes)]
    names = [a.name for a in machine.accelerators]
    return " · ".join([*parts, *(f"{names.count(name)} × {name}" for name in dict.fromkeys(names))])


def revision_rows(run: Run) -> list[Pair]:
    """The commits whose code the run used."""
    rows: list[Pair] = []
    for revision in run.revisions:
        state = ", modified" if revision.modified else ""
        rows.append((f"Revision of {revision.subject}", f"{revision.words}{state} in {revision.root}", False))
    return rows


def machine_rows(machine: Machine) -> list[Pair]:
    rows = [
        ("Name", machine.hostname),
        ("Processor", machine.cpu),
        ("Cores", f"{machine.cores} of {machine.cores_total}"),
        ("Memory", format_bytes(machine.memory_bytes)),
        ("System", f"{machine.system} {machine.kernel}, {machine.architecture}"),
        ("Python", machine.python),
        ("Clock governor", machine.cpu_governor or ""),
        ("Runs in", machine.virtual or ""),
    ]
    for device in machine.accelerators:
        more = [format_bytes(device.memory_bytes)] if device.memory_bytes else []
        more += [f"driver {device.driver}"] if device.driver else []
        rows.append((f"Device {device.index}", ", ".join([device.name, *more])))
    return [*((name, text, False) for name, text in rows if text), ("Fingerprint", machine.fingerprint, True)]
