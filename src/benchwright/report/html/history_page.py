"""`history --format html`: each series drawn run by run with its changes marked, and the table of the changes. Its only script is the choice of the theme."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from benchwright.core.metric_history import BenchmarkHistory
from benchwright.report.document import ReportTable
from benchwright.report.figures.axis import reach
from benchwright.report.figures.text import axis_marks
from benchwright.report.html.pages import page_of
from benchwright.report.tables.history_table import change_words, heading, history_table, summary_words
from benchwright.report.tables.html import escaped
from benchwright.report.text.numbers import format_value, moment

_HEIGHT, _LEFT, _TOP, _BOTTOM = 240, 90, 14, 28
_WIDE, _NARROW = 1000, 360  # a phone shows the narrow drawing, in which letters keep their size
_SCRIPTS = ("theme.js", "history.js")
_MOST_TITLES = 300  # points with a text of their own
_MOST_DOTS = 600  # more are drawn as the range of each stretch: every extreme stays where it is
Marks = Sequence[tuple[int, str]]  # before which point something else changed, and what


class HistoryView(NamedTuple):
    heading: str
    words: str
    drawings: tuple[Markup, Markup]
    table: ReportTable


def history_html(series: Sequence[BenchmarkHistory]) -> str:
    views = [
        HistoryView(
            heading(each),
            summary_words(each),
            history_drawings(each),
            history_table([each]),
        )
        for each in series
    ]
    return page_of("history.html", _SCRIPTS, {"series": views})


def history_drawings(series: BenchmarkHistory, marks: Marks = ()) -> tuple[Markup, Markup]:
    """One for wide pages and one for phones. `marks`: where something besides the code changed."""
    return _drawing(series, "wide", _WIDE, marks), _drawing(series, "narrow", _NARROW, marks)


def _drawing(series: BenchmarkHistory, name: str, width: int, marks: Marks) -> Markup:
    """Every text goes through `escaped`; the rest are numbers."""
    low, high = reach([point.value for point in series.points])
    last = max(1, len(series.points) - 1)

    def across(place: float) -> float:
        return _LEFT + (width - _LEFT - 10) * place / last

    def down(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (high - min(max(value, low), high)) / (high - low)

    parts = []
    for value, text in axis_marks(low, high, series.unit, 5):
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{width}" y1="{down(value):.1f}" y2="{down(value):.1f}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{down(value) + 4:.1f}" text-anchor="end">{escaped(text)}</text>')
    parts += _levels(series, marks, across, down)
    for place, words in marks:
        at = across(place - 0.5)
        title = f"<title>{escaped(words)}</title>"
        parts.append(
            f'<line class="switch" x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}">{title}</line>'
        )
    parts += (
        _points(series, across, down, titled=width == _WIDE)
        if len(series.points) <= _MOST_DOTS
        else _ranges(series, width, across, down)
    )
    for place, anchor in ((0, "start"), (len(series.points) - 1, "end")):
        when = moment(series.points[place].started)
        when = escaped(when if width == _WIDE else when.partition(",")[0])  # the day: there is no room for the hour
        parts.append(f'<text x="{across(place):.1f}" y="{_HEIGHT - 8}" text-anchor="{anchor}">{when}</text>')
    label = escaped(f"{heading(series)}: {summary_words(series)}")
    return Markup(  # noqa: S704
        f'<svg class="history {name}" role="img" aria-label="{label}" viewBox="0 0 {width} {_HEIGHT}">{"".join(parts)}</svg>'
    )


_Place = Callable[[float], float]


def _levels(series: BenchmarkHistory, marks: Marks, across: _Place, down: _Place) -> list[str]:
    """The medians between changes, and the changes. A level ends where something else changed."""
    parts = []
    borders = sorted({0, *(place for place, _ in marks), len(series.points)})
    for first, end in itertools.pairwise(borders):
        changes = [change for change in series.changes if first <= change.place < end]
        start, level = first, changes[0].before if changes else None
        for change in (*changes, None):
            stop = change.place - (not change.drifting) if change else end - 1
            if level is not None and stop > start:
                ends = f'x1="{across(start):.1f}" x2="{across(stop):.1f}" y1="{down(level):.1f}" y2="{down(level):.1f}"'
                parts.append(f'<line class="level" {ends}/>')
            if change:
                start, level = change.end, change.after
                at = across(change.place - 0.5)
                xs, ys = (at, at), (float(_TOP), float(_HEIGHT - _BOTTOM))
                if change.drifting:
                    xs, ys = (across(change.place), across(change.end)), (down(change.before), down(change.after))
                title = f"<title>{escaped(change_words(series, change))}</title>"
                ends = f'x1="{xs[0]:.1f}" x2="{xs[1]:.1f}" y1="{ys[0]:.1f}" y2="{ys[1]:.1f}"'
                parts.append(f'<line class="change {change.verdict.value}" {ends}>{title}</line>')
    return parts


def _points(series: BenchmarkHistory, across: _Place, down: _Place, *, titled: bool) -> list[str]:
    parts = []
    titled = titled and len(series.points) <= _MOST_TITLES
    for number, point in enumerate(series.points):
        title = ""
        if titled:
            cells = [point.run, format_value(point.value, series.unit), point.revision, point.doubt or ""]
            title = f"<title>{escaped(', '.join(filter(None, cells)))}</title>"
        kind = "point doubtful" if point.doubt else "point"
        parts.append(
            f'<circle class="{kind}" cx="{across(number):.1f}" cy="{down(point.value):.1f}" r="3">{title}</circle>'
        )
    return parts


def _ranges(series: BenchmarkHistory, width: int, across: _Place, down: _Place) -> list[str]:
    """From the least to the greatest value of each stretch of runs."""
    stretches = width // 2
    edges = [round(i * len(series.points) / stretches) for i in range(stretches + 1)]
    path = []
    for first, end in itertools.pairwise(edges):
        values = [point.value for point in series.points[first:end]]
        top, bottom = down(max(values)), down(min(values))
        path.append(f"M{across((first + end - 1) / 2):.1f} {top:.1f}V{max(bottom, top + 1):.1f}")
    return [f'<path class="range" d="{"".join(path)}"/>']
