"""`report --format html` and `compare --format html`: one file with everything in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from benchwright.core.run import CheckStatus, Run
from benchwright.core.status import Status
from benchwright.report.base import Report
from benchwright.report.document import Callout, Column, Field, Figure, ReportSection, ReportTable, table_of, word
from benchwright.report.figures.html import html_roofline
from benchwright.report.figures.run import comparison_picture, run_picture
from benchwright.report.html.benchmark import (
    BenchmarkView,
    Pair,
    benchmark_view,
    machine_line,
    machine_rows,
    revision_rows,
)
from benchwright.report.html.pages import render
from benchwright.report.html.sample_blocks import PRECISION, sample_count
from benchwright.report.notes import callouts
from benchwright.report.tables.results import STATUS_ORDER, metric_rows, results_table
from benchwright.report.tables.scores import checks_table, score_section
from benchwright.report.text.numbers import moment, time_between
from benchwright.report.text.settings import settings_rows

_MOST_OPEN = 6  # a run of more benchmarks begins with them closed
_MOST_OPEN_FAILED = 50
_MOST_LOG_LINES = 60
_MOST_LINE = 400
_MOST_LOG_CHARACTERS = 400_000  # in the whole report; the run's folder has all of every log
_MOST_LINKS = 12


class HtmlReporter:
    """A page that works without network and, but for the charts, without scripts."""

    name = "html"

    def render(self, report: Report) -> str:
        if report.added.page is not None:
            return report.added.page()
        run = report.run
        view = _view(report)
        links = {
            "picture": view.picture and "Picture",
            "roofline": view.rooflines and "Roofline",
            "score": view.score and "Score",
            report.added.title.lower(): report.added.sections and report.added.title,
            "summary": "Results",
            "findings": "What stands out",
            "benchmarks": run.results and "Benchmarks",
            "environment": "Environment",
        }
        there = [(place, str(words)) for place, words in links.items() if words]
        return _page(f"{run.name}: {run.status.value}", there, [view], None)


def several_html(reports: Sequence[Report]) -> str:
    """One page for all runs: a table of contents, then everything about each."""
    links = [(f"run-{n}", report.run.name) for n, report in enumerate(reports, 1)]
    title = f"{len(reports)} runs: {', '.join(r.run.name for r in reports[:3])}"
    views = [_view(report, f"-run-{n}") for n, report in enumerate(reports, 1)]
    return _page(title, [("contents", "Runs"), *links[:_MOST_LINKS]], views, _contents(reports))


class RunView(NamedTuple):
    """A run for the template. `at` ends every place of the page that belongs to it."""

    at: str
    run: Run
    machine: str
    tiles: list[tuple[str, str, str]]
    picture: Figure | None
    verdicts: list[Figure]  # between benchmarks of the run
    rooflines: list[Markup]
    score: ReportSection | None
    callouts: list[Callout]
    checks: ReportTable
    check_words: str
    checks_open: bool
    sections: tuple[ReportSection, ...]
    sections_title: str
    results: ReportTable
    statuses: list[str]
    benchmarks: list[BenchmarkView]
    machine_rows: list[Pair]
    run_rows: list[Pair]


def _page(title: str, links: Sequence[tuple[str, str]], runs: Sequence[RunView], contents: ReportTable | None) -> str:
    return render(
        "report.html", scripted=True, title=title, links=links, runs=runs, contents=contents, precision=PRECISION
    )


def _view(report: Report, at: str = "") -> RunView:
    run, results = report.run, report.run.results
    logs, few = _logs(report), len(results) <= _MOST_OPEN
    checks = checks_table(dict(enumerate(results)), every=report.score is not None)
    wrong = sum(c.status in (CheckStatus.FAILED, CheckStatus.WARNED) for r in results for c in r.checks)
    places = {r.benchmark.name: f"b{number}" for number, r in enumerate(results)}
    passed = f"All {len(checks.rows)} checks passed or do not apply"
    return RunView(
        at=at,
        run=run,
        machine=machine_line(run.machine),
        tiles=_tiles(run),
        picture=run_picture(report),
        verdicts=[figure for each in report.comparisons if (figure := comparison_picture(each)) is not None],
        rooflines=[html_roofline(each, places, at) for each in report.rooflines],
        score=score_section(report),
        callouts=callouts(report),
        checks=checks,
        check_words=f"{wrong} of {len(checks.rows)} checks did not pass" if wrong else passed,
        checks_open=bool(wrong),
        sections=report.added.sections,
        sections_title=report.added.title,
        results=results_table(metric_rows(report), drawn=True),
        statuses=[s.value for s in STATUS_ORDER if any(r.status is s for r in results)],
        benchmarks=[
            benchmark_view(
                number,
                report,
                logs,
                opened=few or (r.status is Status.FAILED and len(results) <= _MOST_OPEN_FAILED),
            )
            for number, r in enumerate(results)
        ],
        machine_rows=machine_rows(run.machine),
        run_rows=_run_rows(report),
    )


def _tiles(run: Run) -> list[tuple[str, str, str]]:
    counts = {status: sum(1 for r in run.results if r.status is status) for status in STATUS_ORDER}
    words = ", ".join(f"{count} {status.value}" for status, count in counts.items() if count)
    return [
        ("Benchmarks", f"{len(run.results):,}", words or "0 ok"),
        ("Launches", f"{sum(len(r.launches) for r in run.results):,}", ""),
        ("Samples", f"{sample_count(run.results):,}", "all in this file"),
        ("Took", time_between(run.started, run.ended), "" if run.ended else "not finished"),
    ]


def _run_rows(report: Report) -> list[Pair]:
    run = report.run
    rows: list[Pair] = [("Identifier", run.id, False), ("Started", moment(run.started), False)]
    rows.append(("Ended", moment(run.ended) if run.ended else "not finished", False))
    rows.append(("Files", run.folder, True))
    rows += revision_rows(run)
    rows += [(f"Label {key}", value, False) for key, value in run.labels.items()]
    return rows + [(name, text, False) for name, text in (settings_rows(report.options) if report.options else [])]


def _logs(report: Report) -> dict[str, str]:
    """The last lines of each job's log, failed jobs first, as far as there is room."""
    source: Mapping[str, Sequence[str]] = {**report.log_tails, **report.logs}
    jobs = [x for r in report.run.results for x in r.launches if x.job in source]
    kept: dict[str, str] = {}
    room = _MOST_LOG_CHARACTERS
    for launch in sorted(jobs, key=lambda x: x.status is not Status.FAILED):
        lines = [
            line if len(line) <= _MOST_LINE else line[:_MOST_LINE] + " …"
            for line in source[launch.job][-_MOST_LOG_LINES:]
        ]
        text = "\n".join(lines)
        if len(text) > room:
            break
        room -= len(text)
        kept[launch.job] = text
    return kept


def _contents(reports: Sequence[Report]) -> ReportTable:
    def benchmarks(report: Report) -> str:
        results = report.run.results
        ok = sum(r.status is Status.OK for r in results)
        return f"{len(results):,}" if ok == len(results) else f"{ok:,} of {len(results):,} ok"

    fields: list[Field[tuple[int, Report]]] = [
        Field(Column("run", quoted=True), lambda x: word(x[1].run.id, link=f"run-{x[0]}")),
        Field(Column("status"), lambda x: word(x[1].run.status.value, mark=x[1].run.status.value)),
        Field(Column("started"), lambda x: word(moment(x[1].run.started))),
        Field(Column("benchmarks", right=True), lambda x: word(benchmarks(x[1]))),
        Field(Column("machine"), lambda x: word(machine_line(x[1].run.machine))),
    ]
    return table_of(fields, list(enumerate(reports, 1)))
