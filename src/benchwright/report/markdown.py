"""The report of a run in Markdown, for a pull request or a page: failures first, then the metrics."""

from __future__ import annotations

from benchwright.core.note import Note
from benchwright.core.provenance import revision_words
from benchwright.core.run import Result, Run
from benchwright.core.status import Status
from benchwright.report.base import Report
from benchwright.report.comparison import verdict_blocks
from benchwright.report.document import Cell, Column, Field, LogTail, ReportSection, table_of, word
from benchwright.report.notes import (
    bare,
    benchmark_notes,
    common_remedy,
    log_of,
    metric_notes,
    run_notes,
    shared_by_several,
)
from benchwright.report.tables.results import STATUS_ORDER, metric_rows, results_table
from benchwright.report.tables.scores import DEVICES, checks_table, score_section
from benchwright.report.text.markdown import bullets, code, code_block, folded, markdown_table, plain
from benchwright.report.text.one_line import titled

_MOST_LOG_LINES = 20


class MarkdownReporter:
    name = "markdown"

    def render(self, report: Report) -> str:
        blocks = [f"### {code(report.run.name)}: {_outcome(report.run)}", *_scores(report)]
        sections = [block for section in report.added.sections for block in _section(section)]
        # Sections that show results take the place of tables; others add to them.
        instead = bool(report.added.shown)
        blocks += sections if instead else []
        blocks += _troubles(report)
        blocks += _metrics(report)
        blocks += [] if instead else sections
        if report.comparisons:
            blocks += verdict_blocks(report.comparisons)
        blocks += _notes(report)
        if words := revision_words(report.run.revisions):
            blocks.append(f"Measured at {code(words)}.")
        return "\n\n".join(blocks) + "\n"


def _outcome(run: Run) -> str:
    counts = {status: sum(1 for r in run.results if r.status is status) for status in STATUS_ORDER}
    return ", ".join(f"{n} {status.value}" for status, n in counts.items() if n) or "nothing was measured"


def _scores(report: Report) -> list[str]:
    """The scores, how the devices compare if that was asked for, and what validation found that did not pass."""
    section = score_section(report)
    if section is None:
        return []
    first, *others = section.tables
    blocks = [f"**{plain(' · '.join(section.heading[1:]))}**", *([markdown_table(first)] if first.rows else [])]
    blocks += map(plain, section.about)
    for table in others:
        if report.per_device or table.title != DEVICES:
            blocks += [f"{plain(titled(table.title))}:", markdown_table(table)]
    checks = checks_table(dict(enumerate(report.run.results)), every=False)
    return blocks + ([markdown_table(checks)] if checks.rows else [])


def _section(section: ReportSection) -> list[str]:
    """A kind's section: its first table, notes and logs, the other tables folded."""
    blocks = [f"#### {code(section.heading[0])} {' · '.join(map(plain, section.heading[1:]))}".rstrip()]
    blocks += [markdown_table(table) for table in section.written[:1] if table.rows]
    blocks += [bullets([str(callout.note) for callout in section.callouts])] if section.callouts else []
    blocks += [_log(log) for log in section.logs]
    return blocks + [folded(table.title, markdown_table(table)) for table in section.written[1:]]


def _troubles(report: Report) -> list[str]:
    """Benchmarks that did not end well, and the logs of failures."""
    results = [r for n, r in enumerate(report.run.results) if r.status is not Status.OK and n not in report.added.shown]
    results.sort(key=lambda r: STATUS_ORDER[r.status])
    fields: list[Field[Result]] = [
        Field(Column("benchmark", quoted=True), lambda r: word(r.benchmark.name)),
        Field(Column("status"), lambda r: word(_status(r), mark=r.status.value)),
        Field(Column("detail", quoted=True), lambda r: Cell(r.detail or "", r.detail or None)),
    ]
    logs = [_log(log) for r in results if r.status is Status.FAILED and (log := log_of(r, report))]
    return [markdown_table(table_of(fields, results)), *logs] if results else []


def _status(result: Result) -> str:
    return result.status.value + (f": {result.reason.words}" if result.reason else "")


def _log(log: LogTail) -> str:
    return folded(f"the log's last lines: {log.job}", code_block(log.lines[-_MOST_LOG_LINES:]))


def _metrics(report: Report) -> list[str]:
    """The headline metrics of each benchmark, and the other metrics folded."""
    shown = [row for row in metric_rows(report) if row.metric and row.number not in report.added.shown]
    if report.added.page is not None:  # as there, the other metrics of so many would bury the rest
        return [markdown_table(results_table(shown))] if shown else []
    known = {(row.number, row.metric, str(row.labels)) for row in shown}
    every = [
        row for row in metric_rows(report, every=True) if row.metric and row.metric not in report.added.shown_metrics
    ]
    aside = [row for row in every if (row.number, row.metric, str(row.labels)) not in known]
    blocks = [markdown_table(results_table(shown))] if shown else []
    return blocks + ([folded("memory, CPU, devices and more", markdown_table(results_table(aside)))] if aside else [])


def _notes(report: Report) -> list[str]:
    """Each once: what was noted of the run, of benchmarks and launches, and what stands out in the metrics of the first table."""
    texts = [f"{_mark(note)}{plain(str(note))}" for note in run_notes(report)]
    shared = shared_by_several(report)
    for number, result in enumerate(report.run.results):
        if number in report.added.shown:
            continue
        name = code(result.benchmark.name)
        for s in report.headline(number):
            texts += [f"⚠ {name} {code(s.metric)}: {plain(str(bare(note)))}" for note in metric_notes(s)]
        own = (note for note in benchmark_notes(number, report) if note.text not in shared)
        texts += [f"{_mark(note)}{name}: {plain(str(note))}" for note in own]
    texts += [f"{_mark(each.note)}{each.text(code, plain)}" for each in shared.values()]
    remedy = common_remedy(report)
    texts += [f"→ {plain(remedy)}"] if remedy else []
    return ["\n".join(f"- {text}" for text in dict.fromkeys(texts))] if texts else []


def _mark(note: Note) -> str:
    return "" if note.severity == "info" else "⚠ "
