"""A comparison as text for the terminal, as Markdown for a pull request, as CSV for a spreadsheet, and as JSON for scripts.

What makes a number doubtful stands beside it in each of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from benchwright.core.comparison import Comparison, Effect, Verdict
from benchwright.report.csv import csv_text
from benchwright.report.notes import merged_texts
from benchwright.report.tables.comparison import (
    MARKS,
    change,
    comparison_table,
    launches_words,
    metric_words,
    small_print,
    sorted_effects,
)
from benchwright.report.text.layout import wrapped
from benchwright.report.text.markdown import code, markdown_table, plain
from benchwright.report.text.numbers import format_value, json_body
from benchwright.report.text.one_line import clip


def comparison_text(comparison: Comparison, *, width: int = 80) -> str:
    """Unintended differences first, then every effect, regressions at the top, and notes about the runs."""
    lines = [
        clip(f" {role + ':':<10} {name}{f' ({revision})' if revision else ''}", width)
        for role, name, revision in sides(comparison)
    ]
    for text in warnings(comparison):
        lines += [f" {line}" for line in wrapped(text, width - 1, "")]
    for effect in sorted_effects(comparison.effects):
        lines += _effect_lines(effect, comparison.margin, width)
    for text in doubt_texts(comparison):
        lines += [f" {line}" for line in wrapped(text, width - 1, "")]
    lines.append(f" {count_words(comparison)}")
    for remark in comparison.remarks:
        lines += wrapped(str(remark), width, " ")
    return "\n".join(lines) + "\n"


def sides(comparison: Comparison) -> tuple[tuple[str, str, str], tuple[str, str, str]]:
    """Role, name and revision of control and treatment; a revision is empty if it is unknown."""
    before, after = comparison.revisions or ("", "")
    return ("control", comparison.control, before), ("treatment", comparison.treatment, after)


def verdict_text(comparisons: Sequence[Comparison], *, width: int = 80) -> str:
    """At the end of the run that measured both sides, which has said above what was noted of them."""
    lines = []
    for comparison in comparisons:
        versus = f"{comparison.treatment} vs {_unshared(comparison.control, comparison.treatment)}:"
        for effect in sorted_effects(comparison.effects):
            lines += _effect_lines(msgspec.structs.replace(effect, benchmark=versus), comparison.margin, width)
        if not comparison.effects:
            lines += wrapped(f"{'? no verdict':<22} {versus} nothing to compare", width, " ")
        lines += [line for text in comparison.missing for line in wrapped(f"⚠ {text}", width, "     ")]
    return "".join(f"{line}\n" for line in lines)


def _unshared(name: str, other: str) -> str:
    """`name` without the program that the other one begins with too."""
    program, _, rest = name.partition(" ")
    return rest if rest and other.startswith(f"{program} ") else name


def warnings(comparison: Comparison) -> list[str]:
    """Other differences, and values that cannot be compared."""
    found = [f"{'✗' if d.severe else '⚠'} {d.what}: {d.control} → {d.treatment}" for d in comparison.differences]
    return found + [f"⚠ {text}" for text in comparison.missing]


def doubt_texts(comparison: Comparison) -> list[str]:
    """Notes about the runs and benchmarks; the same note of several is one text."""
    return [f"⚠ {text}" for text in merged_texts(comparison.doubts)]


def _effect_lines(effect: Effect, margin: float, width: int) -> list[str]:
    verdict = f"{MARKS[effect.verdict]} {effect.verdict.value}"
    if effect.verdict is Verdict.SAME:
        verdict += f" (within {margin * 100:g} %)"
    lines = wrapped(f"{verdict:<22} {effect.benchmark} {metric_words(effect)}", width, " ")
    figures = f"{format_value(effect.control, effect.unit)} → {format_value(effect.treatment, effect.unit)}"
    counts = launches_words(effect)
    line = f"     {change(effect):<30} {figures}   {counts}"
    # A name may be cut, a number never: half of one is another number.
    lines += [line] if len(line) <= width else [f"     {change(effect):<30} {counts}", f"     {figures}"]
    return lines + [line for text in small_print(effect) for line in wrapped(text, width, "     ")]


def count_words(comparison: Comparison) -> str:
    """`1 regressed, 3 same of 4`, or that there was nothing to compare."""
    if not comparison.effects:
        return "nothing to compare"
    counts = {v: sum(e.verdict is v for e in comparison.effects) for v in Verdict}
    words = [f"{n} {verdict.value}" for verdict, n in counts.items() if n]
    return f"{', '.join(words)} of {len(comparison.effects)}"


def comparison_markdown(comparison: Comparison) -> str:
    """A table for a pull request."""
    names = " → ".join(
        f"{code(name)}{f' ({code(revision)})' if revision else ''}" for _, name, revision in sides(comparison)
    )
    blocks = [f"{names}: {count_words(comparison)}"]
    blocks += ["\n".join(f"- {plain(text)}" for text in warnings(comparison))] if warnings(comparison) else []
    blocks.append(markdown_table(comparison_table([comparison])))
    below = dict.fromkeys(
        f"- {code(e.benchmark)} {code(metric_words(e))}: {plain(text)}"
        for e in sorted_effects(comparison.effects)
        for text in small_print(e)
    )
    below |= dict.fromkeys(f"- {plain(text)}" for text in doubt_texts(comparison))
    below |= dict.fromkeys(f"- {plain(str(remark))}" for remark in comparison.remarks)
    return "\n\n".join([*blocks, *(["\n".join(below)] if below else [])]) + "\n"


def verdict_blocks(comparisons: Sequence[Comparison]) -> list[str]:
    """As `verdict_text`, in Markdown."""
    return [
        f"{code(c.treatment)} compared with {code(c.control)}: {count_words(c)}\n\n{markdown_table(comparison_table([c]))}"
        for c in comparisons
    ]


def comparison_csv(comparisons: Sequence[Comparison]) -> str:
    """One row for each effect, and one without figures for each benchmark or metric that is not compared.
    Empty where JSON has null."""
    return csv_text([comparison_table(comparisons, missing=True)], finite=True)


def comparison_body(comparison: Comparison) -> dict[str, object]:
    """For JSON; documented in docs/reference/compare.md."""
    body = {"format": "benchwright-comparison", "version": 1} | msgspec.to_builtins(comparison)
    body |= {"doubts": list(map(str, comparison.doubts)), "remarks": list(map(str, comparison.remarks))}
    for shown, effect in zip(body["effects"], comparison.effects, strict=True):
        shown["doubts"] = list(map(str, effect.doubts))
    return json_body(body)


def ab_body(table: Comparison, run: str, verdict: Verdict | None, exit_code: int) -> dict[str, object]:
    """As `comparison_body`, of a whole A/B: which run it is, and what it ended with."""
    return comparison_body(table) | {
        "run": run,
        "verdict": None if verdict is None else verdict.value,
        "exit_code": exit_code,
    }
