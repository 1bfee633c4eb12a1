"""`bw history`: a picture of each series with its changes marked, a table of the changes, and both for machines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from benchwright.core.comparison import Verdict
from benchwright.core.metric_history import BenchmarkHistory, HistoryChange
from benchwright.report.csv import csv_text
from benchwright.report.document import Cell, Column, Field, ReportTable, table_of, word
from benchwright.report.figures.text import scatter
from benchwright.report.text.layout import table_lines, wrapped
from benchwright.report.text.markdown import markdown_table, plain
from benchwright.report.text.metrics import metric_name
from benchwright.report.text.numbers import counted, format_value, json_body, moment

_HEIGHT = 8
_FEWEST = 12
_MARKS = {Verdict.REGRESSED: "▼", Verdict.IMPROVED: "▲"}
_ALL_BUT_SURE = 0.999
_COMMIT = 10


class ChangeLine(NamedTuple):
    series: BenchmarkHistory
    change: HistoryChange


def history_text(series: Sequence[BenchmarkHistory], width: int) -> str:
    return "\n".join(_block(each, width) for each in series)


def history_table(series: Sequence[BenchmarkHistory]) -> ReportTable:
    """Every change of every series, oldest first."""
    return table_of(_FIELDS, [ChangeLine(each, change) for each in series for change in each.changes], mark=_row_mark)


def history_json(series: Sequence[BenchmarkHistory]) -> str:
    body = [json_body(msgspec.to_builtins(each)) for each in series]
    for each, found in zip(series, body, strict=True):
        found["commits"] = [list(each.commits(change)) for change in each.changes]
    return json.dumps(body, indent=1) + "\n"


def history_markdown(series: Sequence[BenchmarkHistory]) -> str:
    table = history_table(series)
    about = "\n".join(f"- {plain(heading(each))}: {plain(summary_words(each))}" for each in series)
    return f"{about}\n\n{markdown_table(table)}\n" if table.rows else f"{about}\n"


def history_csv(series: Sequence[BenchmarkHistory]) -> str:
    return csv_text([history_table(series)], finite=True)


def heading(series: BenchmarkHistory) -> str:
    """`sort: process.duration on host, size 10`."""
    setting = "".join(f", {name} {value}" for name, value in series.setting.items())
    return f"{series.benchmark}: {metric_name(series.metric, series.labels)} on {series.host}{setting}"


def summary_words(series: BenchmarkHistory) -> str:
    runs = counted(len(series.points), "run")
    left = len(series.points) - series.trusted
    doubtful = f", {left} of them disturbed: shown, but not counted" if left else ""
    if series.trusted < _FEWEST:
        return f"{runs}{doubtful}; changes are looked for in {_FEWEST} or more"
    return f"{runs}{doubtful}; {_count_words(series.changes)}"


def _count_words(changes: Sequence[HistoryChange]) -> str:
    """`3 changes, 1 of them gradual`."""
    gradual = sum(change.drifting for change in changes)
    if gradual and gradual == len(changes):
        return counted(gradual, "gradual change")
    return (counted(len(changes), "change") if changes else "no change") + f", {gradual} of them gradual" * bool(
        gradual
    )


def change_words(series: BenchmarkHistory, change: HistoryChange) -> str:
    """`regressed +8.2 % (10 ms → 10.8 ms) 1a2b3c..4d5e6f`; of a trend, `regressed slowly …, since 1a2b3c`."""
    values = f"{format_value(change.before, series.unit)} → {format_value(change.after, series.unit)}"
    return f"{_verdict_words(change)} {_percent(change)} ({values}) {_where(series, change)}".rstrip()


def _block(series: BenchmarkHistory, width: int) -> str:
    values = [(float(number), point.value) for number, point in enumerate(series.points)]
    below = f"{moment(series.points[0].started)} to {moment(series.points[-1].started)}"
    marks = {float(change.place): _MARKS.get(change.verdict, "◆") for change in series.changes}
    drawn = scatter(values, width=width, height=_HEIGHT, unit=series.unit, below=below, marks=marks)
    table = table_lines(history_table([series]), width) if series.changes else []
    better = {"higher": ", higher is better", "lower": ", lower is better"}.get(series.direction.value, "")
    unit = f", in {series.unit}" if series.unit not in (None, "s", "B") else ""  # those stand on the axis
    return "\n".join(
        [
            *wrapped(heading(series) + unit + better, width, " "),
            *drawn,
            *wrapped(summary_words(series), width, " "),
            *table,
            *(line for text in _remarks(series) for line in wrapped(text, width, " ")),
            "",
        ]
    )


def _remarks(series: BenchmarkHistory) -> list[str]:
    texts = []
    for change in series.changes:
        before, after = series.commits(change)
        if before is not None and before == after:
            texts.append(
                f"The change at {series.points[change.place].run} is between runs of the same commit: the machine or the environment changed."
            )
    if any(change.drifting for change in series.changes):
        texts.append("slowly: the level moved gradually, so no single run or commit made the change.")
    if any(not change.settled and not change.drifting for change in series.changes):
        texts.append("recent: its place may still move by a few runs.")
    return texts


def _verdict_words(change: HistoryChange) -> str:
    verdict = "changed" if change.verdict is Verdict.INCONCLUSIVE else change.verdict.value
    return f"{verdict} slowly" if change.drifting else verdict


def _stage(change: HistoryChange) -> str:
    if change.drifting:
        return "drifted" if change.settled else "drifting"
    return "" if change.settled else "recent"


def _percent(change: HistoryChange) -> str:
    return "" if change.ratio is None else f"{(change.ratio - 1) * 100:+.1f} %"


def _where(series: BenchmarkHistory, change: HistoryChange) -> str:
    """The commits it lies between, else the runs; of a trend that goes on, the first."""
    before, after = series.commits(change)
    goes_on = change.drifting and not change.settled
    if before is not None and after is not None and before != after:
        return f"since {_short(before)}" if goes_on else f"{_short(before)}..{_short(after)}"
    if goes_on:
        return f"since {series.points[change.place].run}"
    first, last = (change.place, change.end) if change.drifting else (change.last_before, change.first_after)
    return f"{series.points[first].run}..{series.points[last].run}"


def _short(commit: str) -> str:
    """A hash cut, but not the `+` of modified files; other revisions as they are."""
    name = commit.removesuffix("+")
    if len(name) >= 40 and all(letter in "0123456789abcdef" for letter in name):
        return name[:_COMMIT] + commit[len(name) :]
    return commit


def _confidence(change: HistoryChange) -> str:
    return f"> {_ALL_BUT_SURE * 100:.1f} %" if change.confidence > _ALL_BUT_SURE else f"{change.confidence * 100:.1f} %"


def _row_mark(line: ChangeLine) -> str:
    return line.change.verdict.value


def _number(value: float, line: ChangeLine) -> Cell:
    return Cell(format_value(value, line.series.unit), value)


_FIELDS: list[Field[ChangeLine]] = [
    Field(
        Column("from run", "run", quoted=True),
        lambda line: word(line.series.points[line.change.place].run),
    ),
    Field(
        Column("to run", "to_run", quoted=True, drop_priority=4),
        lambda line: word(line.series.points[line.change.end].run if line.change.drifting else ""),
    ),
    Field(Column("", "benchmark"), lambda line: word(line.series.benchmark)),
    Field(Column("", "metric"), lambda line: word(metric_name(line.series.metric, line.series.labels))),
    Field(Column("", "host"), lambda line: word(line.series.host)),
    Field(Column("", "started"), lambda line: word(line.series.points[line.change.place].started)),
    Field(Column("change", "ratio", right=True), lambda line: Cell(_percent(line.change), line.change.ratio)),
    Field(Column("before", "before", right=True, drop_priority=3), lambda line: _number(line.change.before, line)),
    Field(Column("after", "after", right=True, drop_priority=2), lambda line: _number(line.change.after, line)),
    Field(
        Column("verdict", "verdict"),
        lambda line: Cell(_verdict_words(line.change), line.change.verdict.value, mark=line.change.verdict.value),
    ),
    Field(
        Column("confidence", "confidence", right=True, drop_priority=2),
        lambda line: Cell(_confidence(line.change), line.change.confidence),
    ),
    Field(
        Column("commits", "commits", quoted=True, drop_priority=1), lambda line: word(_where(line.series, line.change))
    ),
    Field(
        Column("", "settled"),
        lambda line: Cell("", line.change.settled),
    ),
    Field(
        Column("", "drifting"),
        lambda line: Cell("", line.change.drifting),
    ),
    Field(Column("", "recent", drop_priority=4), lambda line: Cell(_stage(line.change), None)),
]
