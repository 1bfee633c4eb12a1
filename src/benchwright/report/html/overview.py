"""The top of the report: what was run, what stands out, and the table of all results."""

from __future__ import annotations

from collections.abc import Sequence

from benchwright.core.machine import Machine
from benchwright.core.numbers.quantities import format_bytes
from benchwright.core.results.summary import Summary
from benchwright.core.run import Result, Run
from benchwright.core.status import Status
from benchwright.report.base import Report
from benchwright.report.html.figures import (
    best,
    counted,
    ends,
    figure,
    hint,
    is_noisy,
    metric_name,
    moment,
    percent,
    plain,
    shown_first,
    spread,
    time_between,
)
from benchwright.report.html.findings import Finding, Place, findings
from benchwright.report.html.markup import Html, element, together
from benchwright.report.html.packing import sample_count
from benchwright.report.html.sparkline import sparkline
from benchwright.report.models.rows import telling
from benchwright.report.text.memory import memory_summaries, memory_words, one_memory

_MOST_PLACES = 12
_SEVERITY_WORDS = {"failed": "Failed", "warning": "Warning", "info": "Note"}
_COLUMNS = (
    ("Benchmark", "text"),
    ("Status", "number"),
    ("Metric", "text"),
    ("Value", "number"),
    ("± 95 %", "number"),
    ("Best", "number"),
    ("Launches", "number"),
    ("By launch", None),
    ("Memory", "number"),
)
_SPREAD_WORDS = {
    True: "95 % interval of the median over launches",
    False: "the range of the launches; 6 launches or more give an interval",
}
_ORDER = {Status.FAILED: 0, Status.INTERRUPTED: 1, Status.PENDING: 2, Status.SKIPPED: 3, Status.OK: 4}


def status_badge(status: Status) -> Html:
    return element("span", status.value, class_=f"badge {status.value}")


def header(run: Run) -> Html:
    launches = sum(len(r.launches) for r in run.results)
    ok = sum(1 for r in run.results if r.status is Status.OK)
    tiles = (
        ("Benchmarks", f"{len(run.results):,}", f"{ok} ok" if ok == len(run.results) else _status_words(run.results)),
        ("Launches", f"{launches:,}", ""),
        ("Samples", f"{sample_count(run.results):,}", "all in this file"),
        ("Took", time_between(run.started, run.ended), "" if run.ended else "not finished"),
    )
    return element(
        "header",
        element(
            "div",
            element("p", "Benchwright report", class_="kicker"),
            element("h1", run.name, " ", status_badge(run.status)),
            element("p", element("time", moment(run.started), datetime=run.started), " · ", machine_line(run.machine)),
        ),
        element(
            "dl",
            *(
                element("div", element("dt", label), element("dd", value, element("small", more) if more else None))
                for label, value, more in tiles
            ),
            class_="tiles",
        ),
        class_="top",
    )


def machine_line(machine: Machine) -> str:
    parts = [machine.hostname, f"{machine.cpu}, {counted(machine.cores, 'core')}", format_bytes(machine.memory_bytes)]
    names = [a.name for a in machine.accelerators]
    parts += [f"{names.count(name)} × {name}" for name in dict.fromkeys(names)]
    return " · ".join(parts)


def _status_words(results: Sequence[Result]) -> str:
    counts = {status: sum(1 for r in results if r.status is status) for status in _ORDER}
    return ", ".join(f"{count} {status.value}" for status, count in counts.items() if count)


def standing_out(report: Report) -> Html:
    found = findings(report)
    if not found:
        body: Html = element("p", "Nothing: every launch ended well, and none was marked.", class_="quiet")
    else:
        body = element("ul", *(_finding(f) for f in found), class_="findings")
    return element("section", element("h2", "What stands out"), body, id="findings")


def _finding(finding: Finding) -> Html:
    failed = finding.severity == "failed" and finding.places
    text = (
        together((_link(finding.places[0]), element("span", " " + finding.text)))
        if failed
        else together((finding.text, "." if not finding.text.endswith((".", "!", "?")) else ""))
    )
    return element(
        "li",
        element("span", _SEVERITY_WORDS[finding.severity], class_="mark"),
        element(
            "div",
            element("p", text, class_="what"),
            element("p", finding.detail, class_="detail") if finding.detail else None,
            None if failed else _where(finding.places),
            _tail(finding) if finding.log else None,
            element("p", finding.remedy, class_="remedy") if finding.remedy else None,
        ),
        class_=f"finding {finding.severity}",
    )


def _where(places: Sequence[Place]) -> Html | None:
    if not places:
        return None
    items = [
        element("li", _link(p), element("span", f" {p.figure}", class_="figure") if p.figure else None) for p in places
    ]
    first = element("ul", *items[:_MOST_PLACES], class_="places")
    if len(items) <= _MOST_PLACES:
        return first
    more = element(
        "details",
        element("summary", f"and {len(items) - _MOST_PLACES:,} more"),
        element("ul", *items[_MOST_PLACES:], class_="places"),
    )
    return together((first, more))


def _link(place: Place) -> Html:
    return element("a", place.name, href=f"#b{place.benchmark}", class_="name", title=hint(place.name))


def _tail(finding: Finding) -> Html:
    return together(
        (
            element("p", f"The last lines of {finding.log_of}:", class_="label"),
            element("pre", "\n".join(finding.log), tabindex="0"),
        )
    )


def summary_table(report: Report) -> Html:
    rows = [row for number, r in enumerate(report.run.results) for row in _rows(number, r, report)]
    heads = [
        element("th", element("button", label, type="button", data_kind=kind) if kind else label, scope="col")
        for label, kind in _COLUMNS
    ]
    statuses = [s for s in _ORDER if any(r.status is s for r in report.run.results)]
    picks = [element("option", "every status", value="")] + [
        element("option", s.value, value=s.value) for s in statuses
    ]
    return element(
        "section",
        element(
            "div",
            element("h2", "Results"),
            element(
                "div",
                element(
                    "input", type="search", id="filter", placeholder="Filter by name or metric", aria_label="Filter"
                ),
                element("select", *picks, id="status", aria_label="Status") if len(statuses) > 1 else None,
                element("output", id="shown"),
                class_="tools needs-script",
            ),
            class_="bar",
        ),
        element(
            "table",
            element("thead", element("tr", *heads)),
            element("tbody", *rows),
            id="results",
            class_="results",
        )
        if rows
        else element("p", "This run has no benchmarks.", class_="quiet"),
        id="summary",
    )


def _rows(number: int, result: Result, report: Report) -> list[Html]:
    summaries = list(report.summaries.get(result.benchmark.name, ()))
    memory = _memory_cell(summaries)
    shown = shown_first(telling(result, summaries))
    rows = [_row(number, result, s, memory) for s in shown]
    if not rows:
        why = result.detail or (result.reason.value.replace("_", " ") if result.reason else "nothing measured")
        rows = [
            element(
                "tr",
                *_name_cells(number, result),
                element("td", why, class_="why", colspan=7),
                data_status=result.status.value,
            )
        ]
    return rows


def _name_cells(number: int, result: Result) -> tuple[Html, Html]:
    name = result.benchmark.name
    return (
        element("th", element("a", name, href=f"#b{number}", title=hint(name)), scope="row", class_="name"),
        element("td", status_badge(result.status), data_v=_ORDER[result.status], class_="status"),
    )


def _row(number: int, result: Result, s: Summary, memory: Html) -> Html:
    apart = spread(s)
    if apart is None:
        doubt: object = element("span", "–", title="too few launches to tell")
    else:
        low, high = (s.interval.low, s.interval.high) if s.interval else (min(s.values), max(s.values))
        doubt = together((f"± {percent(apart)}", element("small", " – ".join(ends(low, high, s.unit)))))
    return element(
        "tr",
        *_name_cells(number, result),
        element("td", _clamped(metric_name(s.metric, s.labels)), class_="metric"),
        element("td", figure(s.value, s.unit), data_v=plain(s.value), class_="n value"),
        element(
            "td",
            doubt,
            data_v=None if apart is None else plain(apart),
            title=_SPREAD_WORDS[s.interval is not None] if apart is not None else None,
            class_="n doubt noisy" if is_noisy(s) else "n doubt",
        ),
        element("td", best(s), data_v=plain(s.best), data_label="best", class_="n best"),
        element("td", f"{s.launches:,}", data_v=s.launches, data_label="launches", class_="n launches"),
        element("td", sparkline(s, result), class_="course"),
        memory,
        data_status=result.status.value,
    )


def _clamped(text: str) -> object:
    """At most two lines, where it may be longer."""
    return text if hint(text) is None else element("span", text, class_="clamp", title=text)


def _memory_cell(summaries: Sequence[Summary]) -> Html:
    peaks = memory_summaries(summaries)
    if not peaks:
        return element("td", class_="n memory")
    return element(
        "td",
        one_memory(peaks[0]),
        title=memory_words(summaries),
        data_v=plain(peaks[0].value),
        data_label="memory",
        class_="n memory",
    )
