"""The score of a suite, how its devices compare, and what validation found."""

from __future__ import annotations

from collections.abc import Sequence

from benchwright.core.results.check import CheckStatus
from benchwright.core.results.score import BenchmarkScore, MilabenchScore, ScoreComparison, SuiteScore
from benchwright.report.base import Report
from benchwright.report.html.figures import figure, hint
from benchwright.report.html.markup import Html, element
from benchwright.report.html.overview import status_badge
from benchwright.report.score.screen import (
    NONE,
    compared_words,
    device_words,
    half_width_words,
    milabench_words,
    no_interval_words,
    of_peak_words,
    peak_words,
    score_words,
    share,
    share_words,
    two_digits,
)
from benchwright.report.text.numbers import format_number

_OURS = (
    *("Benchmark", "Status", "Rate", "± 95 %", "Devices", "Overlap", "Peak memory", "Of peak", "J/item"),
    *("Weight", "Score"),
)
_THEIRS = ("Benchmark", "fail", "n", "ngpu", "perf", "sem%", "std%", "peak_memory", "score", "weight")
_BADGES = {
    CheckStatus.PASSED: "ok",
    CheckStatus.FAILED: "failed",
    CheckStatus.WARNED: "pending",
    CheckStatus.NOT_APPLICABLE: "",
}


def score_section(report: Report) -> Html | None:
    """None for what is no suite."""
    if report.score is None:
        return None
    theirs = report.milabench
    return element(
        "section",
        element("h2", "Score" if theirs is None else "Score, as milabench computes it"),
        *(_ours(report.score) if theirs is None else _theirs(theirs)),
        _devices(report.score),
        None if report.compared is None else _compared(report.compared),
        id="score",
    )


def checks_section(report: Report) -> Html | None:
    """What validation found: of a suite all, of other runs only what did not pass."""
    every = report.score is not None
    shown = [
        (number, r.benchmark.name, c)
        for number, r in enumerate(report.run.results)
        for c in r.checks
        if every or c.status in (CheckStatus.FAILED, CheckStatus.WARNED)
    ]
    if not shown:
        return None
    wrong = [entry for entry in shown if entry[2].status in (CheckStatus.FAILED, CheckStatus.WARNED)]
    rows = [
        element(
            "tr",
            element("th", _link(number, name), scope="row", class_="name"),
            element("td", c.layer),
            element("td", element("span", c.status.value.replace("_", " "), class_=f"badge {_BADGES[c.status]}")),
            element("td", c.explanation),
        )
        for number, name, c in sorted(shown, key=lambda entry: entry not in wrong)
    ]
    words = (
        f"{len(wrong)} of {len(shown)} checks did not pass"
        if wrong
        else f"All {len(shown)} checks passed or do not apply"
    )
    return element(
        "section",
        element("h2", "Checks"),
        element(
            "details",
            element("summary", words),
            _table(("Benchmark", "Check", "Verdict", "Why"), rows, numbers_from=4),
            class_="card fold",
            open=bool(wrong),
        ),
        id="checks",
    )


def _ours(score: SuiteScore) -> list[Html | None]:
    about, of_peak = no_interval_words(score), of_peak_words(score)
    return [
        element("p", score_words(score), class_="value"),
        element("p", about, class_="note") if about else None,
        _table(_OURS, [_row(s) for s in score.benchmarks], numbers_from=2),
        element("p", f"{of_peak[0].upper()}{of_peak[1:]}.", class_="note") if of_peak else None,
    ]


def _row(s: BenchmarkScore) -> Html:
    head = (
        element("th", element("span", s.name, title=hint(s.name)), scope="row", class_="name"),
        element("td", status_badge(s.status)),
    )
    if s.value is None:
        why = element("td", s.why or "", class_="why", colspan=7)
        return element("tr", *head, why, _number(f"{s.weight:g}"), _number(NONE))
    return element(
        "tr",
        *head,
        _number(figure(s.median or 0.0, s.unit)),
        _number(half_width_words(s.half_width)),
        _number(device_words(s)),
        _number(NONE if s.overlap is None else f"{s.overlap * 100:.1f} %"),
        _number(peak_words(s) or NONE),
        _number(share_words(s.of_peak) or NONE),
        _number(NONE if s.joules_per_item is None else format_number(s.joules_per_item)),
        _number(f"{s.weight:g}"),
        _number(format_number(s.value)),
    )


def _theirs(score: MilabenchScore) -> list[Html | None]:
    rows = [
        element(
            "tr",
            element("th", r.name, scope="row", class_="name"),
            *(_number(str(n)) for n in (r.fail, r.n, r.ngpu)),
            _number(two_digits(r.perf)),
            _number(share(r.sem)),
            _number(share(r.std)),
            _number(NONE if r.peak_memory_mib is None else f"{r.peak_memory_mib:.0f}"),
            _number(two_digits(r.score)),
            _number(f"{r.counts:g}"),
        )
        for r in score.rows
    ]
    return [
        element("p", " ·".join(milabench_words(score)).strip(), class_="value"),
        _table(_THEIRS, rows, numbers_from=1),
    ]


def _devices(score: SuiteScore) -> Html | None:
    shown = [s for s in score.benchmarks if len(s.seats) > 1]
    names = list(dict.fromkeys(seat.name for s in shown for seat in s.seats))
    if not names:
        return None
    rows = []
    for s in shown:
        seats = {seat.name: seat for seat in s.seats}
        cells = [
            element("td", f"{seat.relative * 100:.1f} %", title=figure(seat.value, s.unit), class_=_slow(seat.relative))
            if (seat := seats.get(name))
            else _number(NONE)
            for name in names
        ]
        rows.append(element("tr", element("th", s.name, scope="row", class_="name"), *cells))
    return element(
        "details",
        element("summary", "Each device against the best"),
        _table(("Benchmark", *names), rows, numbers_from=1),
        class_="card fold",
        open=True,
    )


def _compared(compared: ScoreComparison) -> Html:
    rows = [
        element(
            "tr",
            element("th", r.name, scope="row", class_="name"),
            _number(format_number(r.control)),
            _number(format_number(r.treatment)),
            _number(f"{r.ratio:.3f}"),
        )
        for r in (*compared.benchmarks, *([compared.whole] if compared.whole else []))
    ]
    return element(
        "details",
        element("summary", f"Against {compared.control}"),
        _table(("Benchmark", "Before", "Now", "Ratio"), rows, numbers_from=1),
        *(element("p", f"⚠ {text}", class_="note") for text in compared_words(compared)),
        class_="card fold",
        open=True,
    )


def _slow(relative: float) -> str:
    """A device that is a tenth slower than the best stands out."""
    return "n slow" if relative < 0.9 else "n"


def _table(heads: Sequence[str], rows: Sequence[Html], *, numbers_from: int) -> Html:
    cells = (
        element("th", text, scope="col", class_="n" if i >= numbers_from else None) for i, text in enumerate(heads)
    )
    head = element("thead", element("tr", *cells))
    return element("div", element("table", head, element("tbody", *rows), class_="plain"), class_="scroll")


def _number(text: str) -> Html:
    return element("td", text, class_="n")


def _link(number: int, name: str) -> Html:
    return element("a", name, href=f"#b{number}", title=hint(name))
