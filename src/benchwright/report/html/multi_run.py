"""Several runs in one HTML file: a table of contents, then everything about each."""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchwright.core.status import Status
from benchwright.report.base import Report
from benchwright.report.html.figures import hint, moment
from benchwright.report.html.markup import Html, element, together
from benchwright.report.html.overview import machine_line, status_badge
from benchwright.report.html.reporter import content_of, navigation_bar, page

# Attributes that name a place of the page, or lead to one. Texts cannot be mistaken for them: quotes are escaped there.
_PLACE = re.compile(r'( id="| href="#| data-number=")([A-Za-z0-9][A-Za-z0-9-]*)"')
_MOST_LINKS = 12


def several_html(reports: Sequence[Report]) -> str:
    """One page for all of them."""
    links = [(f"run-{n}", report.run.name) for n, report in enumerate(reports, 1)]
    sections = (
        element("section", _apart(content_of(report), number), class_="run", id=f"run-{number}")
        for number, report in enumerate(reports, 1)
    )
    contents = element("section", element("h2", "Runs"), _table(reports), id="contents")
    title = f"{len(reports)} runs"
    head = element(
        "header",
        element("div", element("p", "Benchwright report", class_="kicker"), element("h1", title)),
        class_="top",
    )
    bar = navigation_bar([("contents", "Runs"), *links[:_MOST_LINKS]])
    return page(f"{title}: {', '.join(r.run.name for r in reports[:3])}", bar, together((head, contents, *sections)))


def _apart(content: Html, number: int) -> Html:
    """The same with places of its own: what every run has would otherwise be there several times."""
    return Html(_PLACE.sub(rf'\1\2-run-{number}"', content))


def _table(reports: Sequence[Report]) -> Html:
    heads = ("Run", "Status", "Started", "Benchmarks", "Machine")
    return element(
        "div",
        element(
            "table",
            element(
                "thead",
                element(
                    "tr",
                    *(element("th", text, scope="col", class_="n" if text == "Benchmarks" else None) for text in heads),
                ),
            ),
            element("tbody", *(_row(number, report) for number, report in enumerate(reports, 1))),
            class_="contents",
        ),
        class_="scroll",
        tabindex="0",
    )


def _row(number: int, report: Report) -> Html:
    run = report.run
    ok = sum(r.status is Status.OK for r in run.results)
    count = f"{len(run.results):,}" if ok == len(run.results) else f"{ok:,} of {len(run.results):,} ok"
    return element(
        "tr",
        element("th", element("a", run.id, href=f"#run-{number}", title=hint(run.id)), scope="row", class_="name"),
        element("td", status_badge(run.status)),
        element("td", element("time", moment(run.started), datetime=run.started)),
        element("td", count, class_="n"),
        element("td", machine_line(run.machine)),
    )
