"""A comparison as text for the terminal, as Markdown for a pull request, as CSV for a spreadsheet, and as JSON for scripts.

What makes a number doubtful stands beside it in each of them.
"""

from __future__ import annotations

import io
import json
import math
import textwrap
from collections.abc import Sequence
from typing import Any

import msgspec

from benchwright.core.metric import Direction
from benchwright.core.results.comparison import Comparison, Effect, Verdict
from benchwright.report.csv_table import labels_text
from benchwright.report.screen import format_value
from benchwright.report.text.csv_cells import write_row
from benchwright.report.text.one_line import clip, one_line

_MARKS = {Verdict.REGRESSED: "▼", Verdict.IMPROVED: "▲", Verdict.SAME: "=", Verdict.INCONCLUSIVE: "?"}
_ORDER = {Verdict.REGRESSED: 0, Verdict.INCONCLUSIVE: 1, Verdict.IMPROVED: 2, Verdict.SAME: 3}


def comparison_text(comparison: Comparison, *, width: int = 80) -> str:
    """What differs besides the treatment first, then every effect, regressions at the top."""
    lines = [clip(f" control:   {comparison.control}", width), clip(f" treatment: {comparison.treatment}", width)]
    for difference in comparison.differences:
        mark = "✗" if difference.severe else "⚠"
        text = f" {mark} {difference.what}: {difference.control} → {difference.treatment}"
        lines += textwrap.wrap(one_line(text), width, subsequent_indent="     ")
    for text in (*comparison.missing, *comparison.doubts):
        lines += textwrap.wrap(one_line(f" ⚠ {text}"), width, subsequent_indent="     ")
    for effect in sorted_effects(comparison.effects):
        lines += _effect_lines(effect, comparison.margin, width)
    lines.append(f" {count_words(comparison)}")
    for remark in comparison.remarks:
        lines += textwrap.wrap(f" {remark}", width, subsequent_indent="   ", break_on_hyphens=False)
    return "\n".join(lines) + "\n"


def _effect_lines(effect: Effect, margin: float, width: int) -> list[str]:
    name = f"{effect.benchmark} {metric_words(effect)}"
    figures = f"{format_value(effect.control, effect.unit)} → {format_value(effect.treatment, effect.unit)}"
    counts = f"{effect.launches[0]} pairs" if effect.paired else f"{effect.launches[0]}+{effect.launches[1]} launches"
    verdict = f"{_MARKS[effect.verdict]} {effect.verdict.value}"
    if effect.verdict is Verdict.SAME:
        verdict += f" (within {margin * 100:g} %)"
    lines = [clip(f" {verdict:<22} {name}", width)]
    line = f"     {change(effect):<30} {figures}   {counts}"
    # A name may be cut, a number never: half of one is another number.
    lines += [line] if len(line) <= width else [f"     {change(effect):<30} {counts}", f"     {figures}"]
    for text in small_print(effect):
        lines += textwrap.wrap(text, width, initial_indent="     ", subsequent_indent="       ", break_on_hyphens=False)
    return lines


def small_print(effect: Effect) -> list[str]:
    """Over which steps it was compared, why it may be due to something else, and what would help."""
    basis, advice = ([text] if text else [] for text in (effect.basis, effect.advice))
    return [*basis, *(f"⚠ {doubt}" for doubt in effect.doubts), *advice]


def change(effect: Effect) -> str:
    """`+3.1 % [2.4, 3.9]`: the treatment against the control; `no ratio` where one of them is 0 or no number."""
    if not math.isfinite(effect.ratio):
        return "no ratio"
    text = f"{(effect.ratio - 1) * 100:+.1f} %"
    if effect.interval is not None:
        text += f" [{(effect.interval.low - 1) * 100:+.1f}, {(effect.interval.high - 1) * 100:+.1f}]"
    return text


def count_words(comparison: Comparison) -> str:
    """`1 regressed, 3 same of 4`, or that there was nothing to compare."""
    if not comparison.effects:
        return "nothing to compare"
    counts = {v: sum(e.verdict is v for e in comparison.effects) for v in Verdict}
    words = [f"{n} {verdict.value}" for verdict, n in counts.items() if n]
    return f"{', '.join(words)} of {len(comparison.effects)}"


def comparison_markdown(comparison: Comparison) -> str:
    """A table for a pull request."""
    names = f"**{_escape(comparison.control)}** → **{_escape(comparison.treatment)}**"
    lines = [f"{names}: {count_words(comparison)}", ""]
    for difference in comparison.differences:
        lines.append(f"- ⚠ {_escape(difference.what)}: {_escape(difference.control)} → {_escape(difference.treatment)}")
    lines += [f"- ⚠ {_escape(text)}" for text in (*comparison.missing, *comparison.doubts)]
    lines += [
        "",
        "| verdict | benchmark | metric | control | treatment | change | launches |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for e in sorted_effects(comparison.effects):
        cells = [
            f"{_MARKS[e.verdict]} {e.verdict.value}{' ⚠' if e.doubts else ''}",
            _escape(e.benchmark),
            _escape(metric_words(e)),
            format_value(e.control, e.unit),
            format_value(e.treatment, e.unit),
            change(e),
            f"{e.launches[0]} + {e.launches[1]}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    below = dict.fromkeys(
        f"- {_escape(e.benchmark)} {_escape(metric_words(e))}: {_escape(text)}"
        for e in sorted_effects(comparison.effects)
        for text in small_print(e)
    )
    below |= dict.fromkeys(f"- {_escape(remark)}" for remark in comparison.remarks)
    return "\n".join([*lines, *(["", *below] if below else [])]) + "\n"


CSV_COLUMNS = (
    *("control", "treatment", "benchmark", "metric", "labels", "unit", "direction", "verdict", "control_value"),
    *("treatment_value", "ratio", "low", "high", "widened", "confidence", "p_value", "q_value", "control_launches"),
    *("treatment_launches", "paired", "basis", "doubts", "advice"),
)


def comparison_csv(comparisons: Sequence[Comparison]) -> str:
    """One row for each effect, and one without figures for each benchmark or metric that is not compared."""
    text = io.StringIO()
    write_row(text, CSV_COLUMNS)
    for comparison in comparisons:
        for effect in sorted_effects(comparison.effects):
            write_row(text, _csv_cells(comparison, effect))
        for about in comparison.missing:
            left = {"control": comparison.control, "treatment": comparison.treatment}
            left |= {"verdict": "lost" if about in comparison.lost else "not compared", "doubts": about}
            write_row(text, [left.get(name, "") for name in CSV_COLUMNS])
    return text.getvalue()


def _csv_cells(comparison: Comparison, e: Effect) -> list[object]:
    ends = ("", "", "") if e.interval is None else (e.interval.low, e.interval.high, e.interval.widened)
    chances = ("" if p is None else p for p in (e.p_value, e.q_value))
    differences = [f"{d.what}: {d.control} → {d.treatment}" for d in comparison.differences]
    doubts = "; ".join((*e.doubts, *comparison.doubts, *differences))
    return [
        *(comparison.control, comparison.treatment, e.benchmark, e.metric, labels_text(e.labels), e.unit or ""),
        *(e.direction.value, e.verdict.value, e.control, e.treatment, e.ratio, *ends, comparison.confidence, *chances),
        *(*e.launches, "yes" if e.paired else "no", e.basis or "", doubts, e.advice or ""),
    ]


def comparison_json(comparison: Comparison) -> str:
    """Documented in docs/reference/compare.md."""
    body: dict[str, Any] = {"format": "benchwright-comparison", "version": 1} | msgspec.to_builtins(comparison)
    return json.dumps(_finite(body), indent=1, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: they are written as text, as in run.json."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    return [_finite(v) for v in value] if isinstance(value, list | tuple) else value


def metric_words(effect: Effect) -> str:
    """The metric with what tells it apart."""
    labels = ", ".join(f"{k} {v}" for k, v in effect.labels.items() if k not in ("loop",))
    better = {Direction.HIGHER: "", Direction.LOWER: "", Direction.NEITHER: " (no better or worse)"}[effect.direction]
    return effect.metric + (f" [{labels}]" if labels else "") + better


def sorted_effects(effects: Sequence[Effect]) -> list[Effect]:
    """Regressions first."""
    return sorted(effects, key=lambda e: (_ORDER[e.verdict], e.benchmark, e.metric))


def _escape(text: str) -> str:
    for character, written in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "\\|"), ("\n", " ")):
        text = text.replace(character, written)
    return text
