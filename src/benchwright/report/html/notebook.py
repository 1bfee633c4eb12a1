"""A run and a comparison as the output of a notebook's cell: a fragment with its own style, which changes nothing around it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from benchwright.core.comparison import Comparison
from benchwright.core.run import Run
from benchwright.core.status import Status
from benchwright.report.base import Report
from benchwright.report.comparison import count_words, warnings
from benchwright.report.document import Callout, Figure, ReportSection, ReportTable
from benchwright.report.figures.run import comparison_picture, run_picture
from benchwright.report.html.benchmark import machine_line
from benchwright.report.html.pages import asset, render
from benchwright.report.notes import callouts
from benchwright.report.tables.comparison import comparison_table
from benchwright.report.tables.results import metric_rows, results_table
from benchwright.report.tables.scores import score_section

_LINK = re.compile(r'<a (?:class="name" )?href="#[^"]*"(?: class="name")?>(.*?)</a>')
# JupyterLab and VS Code say which theme they have; elsewhere the browser does.
_DARK = '&[data-theme="dark"], [data-jp-theme-light="false"] &, .vscode-dark &'
_NOT_LIGHT = '&:not([data-jp-theme-light="true"] *, .vscode-light *)'
_OWN = """\
& { background: none; margin: .4rem 0; max-width: 1100px; }
section { margin: .8rem 0; }
.fitting { container-type: inline-size; }
@container (max-width: 900px) { .results .launches, .results .best { display: none; } .results th, .results td { padding-inline: .4rem; } }
@container (max-width: 640px) { .results .course, .results .memory { display: none; } .results th, .results td, .results small { white-space: normal; max-width: none; } }
.cell-head { margin-bottom: .5rem; }
th button { pointer-events: none; border: 0; padding: 0; background: none; }
th button::after { display: none; }
"""


class _CellView(NamedTuple):
    run: Run
    machine: str
    picture: Figure | None
    score: ReportSection | None
    sections: tuple[ReportSection, ...]
    results: ReportTable
    callouts: list[Callout]
    failed: bool


def run_cell(report: Report) -> str:
    """The picture, the results and what stands out. `report --format html` has every sample."""
    run = report.run
    view = _CellView(
        run=run,
        machine=machine_line(run.machine),
        picture=run_picture(report),
        score=score_section(report),
        sections=report.added.sections,
        results=results_table(metric_rows(report), drawn=True),
        callouts=callouts(report),
        failed=any(r.status is Status.FAILED for r in run.results),
    )
    return _fragment(view=view, comparisons=())


def comparison_cell(comparisons: Sequence[Comparison]) -> str:
    """Every effect with its interval and its verdict."""
    views = [
        {
            "sides": (c.control, c.treatment),
            "words": count_words(c),
            "warnings": warnings(c),
            "picture": comparison_picture(c),
            "table": comparison_table([c]),
            "remarks": list(map(str, c.remarks)),
        }
        for c in comparisons
    ]
    return _fragment(comparisons=views)


def _fragment(**context: object) -> str:
    """Links within a page lead nowhere in a notebook."""
    made = render("notebook.html", scripted=False, scoped=_scoped_style(), **context)
    return _LINK.sub(r'<span class="name">\1</span>', made)


@lru_cache(maxsize=1)
def _scoped_style() -> str:
    """The report's style, nested in a class: it holds for nothing else in the notebook."""
    style = asset("report.css")
    for of_page, of_cell in (
        (':root:not([data-theme="light"])', _NOT_LIGHT),
        (':root[data-theme="dark"]', _DARK),
        (":root", "&"),
        ("\nbody {", "\n& {"),
    ):
        style = style.replace(of_page, of_cell)
    return f".benchwright {{\n{style}\n{_OWN}\n}}"
