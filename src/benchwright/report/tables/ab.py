"""An A/B as text for the terminal and as Markdown for a pull request: both revisions, one table, every pair, the doubts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from benchwright.core.comparison import Comparison, Effect, Verdict
from benchwright.report.comparison import count_words, doubt_texts, warnings
from benchwright.report.document import OPTIONAL, Cell, Column, Field, Figure, FigureRow, ReportTable, table_of, word
from benchwright.report.figures.run import comparison_picture
from benchwright.report.tables.comparison import MARKS, change, metric_words, small_print, sorted_effects
from benchwright.report.text.layout import is_whole, table_lines, wrapped
from benchwright.report.text.markdown import code, markdown_table, plain
from benchwright.report.text.numbers import format_value
from benchwright.report.text.one_line import clip

_MOST_DRAWN = 12
_DOTS = " ·:⁝"
_MARKDOWN_MARKS = {
    Verdict.REGRESSED: "🔴",
    Verdict.IMPROVED: "🟢",
    Verdict.SAME: "⚪",
    Verdict.INCONCLUSIVE: "🟡",
}


def ab_text(comparison: Comparison, *, width: int = 80) -> str:
    """Fits the terminal."""
    lines = [clip(f" control    {comparison.control}", width), clip(f" treatment  {comparison.treatment}", width), ""]
    shown, same = _shown_and_same(comparison)
    lines += _rows(shown, comparison.margin, width)
    lines += [x for text in same for x in wrapped(text, width, " ")]
    lines += _drawing(comparison, shown, width)
    for text in (*warnings(comparison), *doubt_texts(comparison)):
        lines += [f" {line}" for line in wrapped(text, width - 1, "")]
    lines += [x for remark in comparison.remarks for x in wrapped(str(remark), width, " ")]
    return "\n".join([*lines, f" {count_words(comparison)}"]) + "\n"


def _rows(effects: Sequence[Effect], margin: float, width: int) -> list[str]:
    """The table, each row with its small print; text that consecutive rows would repeat stands below the last of them.

    Names that do not fit into a column are headings.
    """
    if not effects:
        return []
    table = _table(effects, margin)
    named = is_whole(table, width)
    if not named:
        effects = sorted(effects, key=lambda e: min(i for i, x in enumerate(effects) if x.benchmark == e.benchmark))
        table = _table(effects, margin, named=False)
    indent = "" if named else "  "
    head, *rows = table_lines(table, width - len(indent))
    lines = [indent + head]
    for number, (row, effect) in enumerate(zip(rows, effects, strict=True)):
        before = effects[number - 1].benchmark if number else None
        lines += [] if named or effect.benchmark == before else [clip(f" {effect.benchmark}", width)]
        after = effects[number + 1] if number + 1 < len(effects) else None
        repeated = (
            after is not None and after.benchmark == effect.benchmark and small_print(after) == small_print(effect)
        )
        texts = [] if repeated else small_print(effect)
        lines += [indent + row, *(x for text in texts for x in wrapped(text, width, f"{indent}   "))]
    return lines


def _shown_and_same(comparison: Comparison) -> tuple[list[Effect], list[str]]:
    """The effects that have a row, and effects that are only named: unchanged, and not what a benchmark is about."""
    effects = sorted_effects(comparison.effects)
    rows = [e for e in effects if not e.beside or e.verdict is not Verdict.SAME]
    others = [e for e in effects if e not in rows]
    metrics = dict.fromkeys(metric_words(e) for e in others)
    named = []
    for metric in metrics:
        names = [e.benchmark for e in others if metric_words(e) == metric]
        every = len(names) == len({e.benchmark for e in effects})
        named.append(metric if every else f"{metric} ({', '.join(names)})")
    return rows, [f"also the same: {', '.join(named)}"] if named else []


def _drawing(comparison: Comparison, effects: Sequence[Effect], width: int) -> list[str]:
    drawn = [e for e in effects if e.pairs and math.isfinite(e.ratio)][:_MOST_DRAWN]
    if len({e.benchmark for e in effects}) == 1:
        drawn = [replace(e, benchmark="") for e in drawn]  # named above
    figure = comparison_picture(comparison, "Paired differences", effects=drawn)
    if figure is None:
        return []
    names = min(max(len(row.name) for row in figure.rows), width // 3)
    room = width - names - 3
    lines = [" paired differences: treatment ÷ control of each pair of launches"]
    for row in figure.rows:
        lines += [f" {clip(row.name, names):<{names}} {_dots(figure, row, room)}".rstrip()]
        lines += [f" {'':<{names}} {_interval(figure, row, room)}".rstrip()]
    return ["", *lines, f" {'':<{names}} {_axis_line(figure, room)}".rstrip(), ""]


def _dots(figure: Figure, row: FigureRow, room: int) -> str:
    """`·` is a pair, `:` two, `⁝` three or more at the same place."""
    places = Counter(round(figure.at(dot) * (room - 1)) for dot in row.dots)
    zero = round(figure.at(0.0) * (room - 1))
    cells = [_DOTS[min(places[n], 3)] if n in places else "┊" if n == zero else " " for n in range(room)]
    if any(dot < figure.low for dot in row.dots):
        cells[0] = "‹"
    if any(dot > figure.high for dot in row.dots):
        cells[-1] = "›"
    return "".join(cells)


def _interval(figure: Figure, row: FigureRow, room: int) -> str:
    """`●` the change, `━` its interval."""

    def at(value: float) -> int:
        return round(figure.at(value) * (room - 1))

    assert row.value is not None
    cells = [" "] * room
    if figure.line is not None:
        cells[at(figure.line)] = "┊"
    if row.low is not None and row.high is not None:
        cells[at(row.low) : at(row.high) + 1] = "━" * (at(row.high) - at(row.low) + 1)
    cells[at(row.value)] = "●"
    for value in (v for v in (row.value, row.low, row.high) if v is not None and figure.is_beyond(v)):
        cells[0 if value < figure.low else -1] = "‹" if value < figure.low else "›"
    return "".join(cells)


def _axis_line(figure: Figure, room: int) -> str:
    """The numbers below the axis, as many as have room."""
    marks = [" "] * room
    for value, words in figure.ticks:
        start = min(max(round(figure.at(value) * (room - 1)) - len(words) // 2, 0), room - len(words))
        if start >= 0 and not "".join(marks[max(start - 1, 0) : start + len(words) + 1]).strip():
            marks[start : start + len(words)] = words
    return "".join(marks)


def _verdict(effect: Effect, margin: float, marks: dict[Verdict, str] = MARKS) -> Cell:
    within = f" (within {margin * 100:g} %)" if effect.verdict is Verdict.SAME else ""
    return word(f"{marks[effect.verdict]} {effect.verdict.value}{within}{' ⚠' if effect.doubts else ''}")


def _values(effect: Effect) -> str:
    return f"{format_value(effect.control, effect.unit)} → {format_value(effect.treatment, effect.unit)}"


def _table(
    effects: Sequence[Effect], margin: float, marks: dict[Verdict, str] = MARKS, *, named: bool = True
) -> ReportTable:
    names = (Field[Effect](Column("benchmark", quoted=True), lambda e: word(e.benchmark)),)
    fields: tuple[Field[Effect], ...] = (
        *(names if named else ()),
        Field(Column("metric", quoted=True), lambda e: word(metric_words(e))),
        Field(Column("control → treatment", drop_priority=OPTIONAL), lambda e: word(_values(e))),
        Field(Column("effect"), lambda e: word(change(e))),
        Field(Column("verdict"), lambda e: _verdict(e, margin, marks)),
        Field(Column("launches", right=True), lambda e: word(f"{min(e.launches)} × 2")),
    )
    return table_of(fields, effects)


def ab_markdown(comparison: Comparison, *, headed: bool = True) -> str:
    """For a pull request: what matters first, the rest folded. `headed`: with what was compared."""
    shown, same = _shown_and_same(comparison)
    names = f"{code(comparison.control)} → {code(comparison.treatment)}"
    blocks = [
        *([f"### Benchmarks: {count_words(comparison)}", names] if headed else []),
        markdown_table(_table(shown, comparison.margin, _MARKDOWN_MARKS)) if shown else "Nothing could be compared.",
    ]
    advised = dict.fromkeys(
        f"- {code(e.benchmark)} {code(metric_words(e))}: {plain(text)}" for e in shown for text in small_print(e)
    )
    notes = dict.fromkeys(
        f"- {plain(text)}"
        for text in (*same, *warnings(comparison), *doubt_texts(comparison), *map(str, comparison.remarks))
    )
    if lines := [*advised, *notes]:
        notes_text = "\n".join(lines)
        blocks.append(f"<details><summary>Notes</summary>\n\n{notes_text}\n\n</details>")
    level = f"{comparison.confidence * 100:.4g} %"
    blocks.append(
        f"<sub>Effect: treatment ÷ control over pairs of launches, with its {level} confidence interval.</sub>"
    )
    return "\n\n".join(blocks) + "\n"
