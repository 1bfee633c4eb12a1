"""A comparison as text for the terminal, as markdown for a pull request, and as JSON for scripts."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Sequence
from typing import Any

import msgspec

from benchwright.domain.comparison import Comparison, Effect, Verdict
from benchwright.domain.metric import Direction
from benchwright.reporters.one_line import clip, one_line
from benchwright.reporters.screen import format_value

_MARKS = {Verdict.REGRESSED: "▼", Verdict.IMPROVED: "▲", Verdict.SAME: "=", Verdict.INCONCLUSIVE: "?"}
_ORDER = {Verdict.REGRESSED: 0, Verdict.INCONCLUSIVE: 1, Verdict.IMPROVED: 2, Verdict.SAME: 3}


def comparison_text(comparison: Comparison, *, width: int = 80) -> str:
    """What differs besides the treatment first, then every effect, regressions at the top."""
    lines = [clip(f" control:   {comparison.control}", width), clip(f" treatment: {comparison.treatment}", width)]
    for difference in comparison.differences:
        mark = "✗" if difference.severe else "⚠"
        text = f" {mark} {difference.what}: {difference.control} → {difference.treatment}"
        lines += textwrap.wrap(one_line(text), width, subsequent_indent="     ")
    for text in comparison.missing:
        lines += textwrap.wrap(one_line(f" ⚠ {text}"), width, subsequent_indent="     ")
    for effect in sorted_effects(comparison.effects):
        lines += _effect_lines(effect, comparison.margin, width)
    lines.append(f" {count_words(comparison)}")
    if any(e.verdict in (Verdict.REGRESSED, Verdict.IMPROVED) for e in comparison.effects):
        for remark in comparison.remarks:
            lines += textwrap.wrap(f" {remark}", width, subsequent_indent="   ")
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
    for text in (effect.doubt and f"⚠ {effect.doubt}", effect.advice):
        if text:
            lines += textwrap.wrap(text, width, initial_indent="     ", subsequent_indent="       ")
    return lines


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
    lines += [f"- ⚠ {_escape(text)}" for text in comparison.missing]
    lines += [
        "",
        "| verdict | benchmark | metric | control | treatment | change | launches |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for e in sorted_effects(comparison.effects):
        cells = [
            f"{_MARKS[e.verdict]} {e.verdict.value}",
            _escape(e.benchmark),
            _escape(metric_words(e)),
            format_value(e.control, e.unit),
            format_value(e.treatment, e.unit),
            change(e),
            f"{e.launches[0]} + {e.launches[1]}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    doubts = dict.fromkeys(
        f"- {_escape(e.benchmark)} {_escape(metric_words(e))}: {_escape(text)}"
        for e in sorted_effects(comparison.effects)
        for text in (e.doubt and f"⚠ {e.doubt}", e.advice)
        if text
    )
    return "\n".join([*lines, *(["", *doubts] if doubts else [])]) + "\n"


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
