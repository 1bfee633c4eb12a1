"""The table of a comparison: a row for each effect; for machines also one for each thing that could not be compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchwright.core.comparison import Comparison, Effect, Verdict
from benchwright.core.metric import Direction
from benchwright.report.document import Cell, Column, Field, ReportTable, table_of, word
from benchwright.report.tables.results import labels_text
from benchwright.report.text.metrics import metric_name
from benchwright.report.text.numbers import format_value

MARKS = {Verdict.REGRESSED: "▼", Verdict.IMPROVED: "▲", Verdict.SAME: "=", Verdict.INCONCLUSIVE: "?"}
_BADGES = {Verdict.REGRESSED: "bad", Verdict.IMPROVED: "ok", Verdict.SAME: "rest", Verdict.INCONCLUSIVE: "care"}
_ORDER = {Verdict.REGRESSED: 0, Verdict.INCONCLUSIVE: 1, Verdict.IMPROVED: 2, Verdict.SAME: 3}


class Compared(NamedTuple):
    """An effect, or what could not be compared, in words."""

    comparison: Comparison
    effect: Effect | None = None
    missing: str = ""


def comparison_table(comparisons: Sequence[Comparison], *, missing: bool = False, remarks: bool = False) -> ReportTable:
    """Regressions first. `missing`: with rows for what could not be compared. `remarks`: beside their row, for those who have
    the room."""
    items: list[Compared] = []
    for comparison in comparisons:
        items += [Compared(comparison, effect) for effect in sorted_effects(comparison.effects)]
        items += [Compared(comparison, missing=text) for text in comparison.missing] if missing else []
    beside: list[Field[Compared]] = [Field(Column("remarks"), _of_effect(_remarks))] if remarks else []
    return table_of([*FIELDS, *beside], items)


def _remarks(effect: Effect) -> Cell:
    return Cell("; ".join(small_print(effect)))


def sorted_effects(effects: Sequence[Effect]) -> list[Effect]:
    """Regressions first; what a benchmark is about before what is compared beside it."""
    return sorted(effects, key=lambda e: (_ORDER[e.verdict], e.benchmark, e.beside, e.metric))


def change(effect: Effect) -> str:
    """`+3.1 % [2.4, 3.9]`: the treatment against the control; `no ratio` where one of them is 0 or no number."""
    if not math.isfinite(effect.ratio):
        return "no ratio"
    text = f"{(effect.ratio - 1) * 100:+.1f} %"
    if effect.interval is not None:
        text += f" [{(effect.interval.low - 1) * 100:+.1f}, {(effect.interval.high - 1) * 100:+.1f}]"
    return text


def metric_words(effect: Effect) -> str:
    """The metric with what tells it apart."""
    labels = ", ".join("at most" if k == "bound" else f"{k} {v}" for k, v in effect.labels.items() if k != "loop")
    neither = " (no better or worse)" if effect.direction is Direction.NEITHER else ""
    return metric_name(effect.metric, {}, beside=effect.beside) + (f" [{labels}]" if labels else "") + neither


def small_print(effect: Effect) -> list[str]:
    """Over which steps it was compared, why it may be due to something else, and what would help."""
    basis, advice = ([text] if text else [] for text in (effect.basis, effect.advice))
    return [*basis, *(f"⚠ {doubt}" for doubt in effect.doubts), *advice]


def launches_words(effect: Effect) -> str:
    """`8 pairs`, `6 + 12 launches`."""
    if effect.paired:
        return "1 pair" if effect.launches[0] == 1 else f"{effect.launches[0]} pairs"
    return f"{effect.launches[0]} + {effect.launches[1]} launches"


def _of_effect(cell: Callable[[Effect], Cell]) -> Callable[[Compared], Cell]:
    return lambda x: Cell() if x.effect is None else cell(x.effect)


def _verdict(e: Effect) -> Cell:
    return Cell(f"{MARKS[e.verdict]} {e.verdict.value}{' ⚠' if e.doubts else ''}", mark=_BADGES[e.verdict])


def _doubts(x: Compared) -> str:
    if x.effect is None:
        return x.missing
    differences = (f"{d.what}: {d.control} → {d.treatment}" for d in x.comparison.differences)
    return "; ".join((*map(str, (*x.effect.doubts, *x.comparison.doubts)), *differences))


def _missing_verdict(x: Compared) -> str:
    if x.effect is not None:
        return x.effect.verdict.value
    return "lost" if x.missing in x.comparison.lost else "not compared"


def _kept(key: str, value: Callable[[Effect], object] | None = None) -> Field[Compared]:
    return Field(Column(key=key), _of_effect(lambda e: Cell(value=value(e) if value else getattr(e, key))))


def _shown(title: str, key: str, value: Callable[[Effect], float]) -> Field[Compared]:
    return Field(Column(title, key, right=True), _of_effect(lambda e: Cell(format_value(value(e), e.unit), value(e))))


FIELDS: tuple[Field[Compared], ...] = (
    Field(Column("verdict"), _of_effect(_verdict)),
    Field(Column(key="control"), lambda x: Cell(value=x.comparison.control)),
    Field(Column(key="treatment"), lambda x: Cell(value=x.comparison.treatment)),
    Field(Column("benchmark", "benchmark", quoted=True), _of_effect(lambda e: word(e.benchmark))),
    Field(Column("metric", "metric", quoted=True), _of_effect(lambda e: Cell(metric_words(e), e.metric))),
    _kept("labels", lambda e: labels_text(e.labels)),
    _kept("unit"),
    _kept("direction", lambda e: e.direction.value),
    Field(Column(key="verdict"), lambda x: Cell(value=_missing_verdict(x))),
    _shown("control", "control_value", lambda e: e.control),
    _shown("treatment", "treatment_value", lambda e: e.treatment),
    Field(Column("change", "ratio", right=True), _of_effect(lambda e: Cell(change(e), e.ratio))),
    *(_kept(name, lambda e, name=name: getattr(e.interval, name, None)) for name in ("low", "high", "widened")),  # type: ignore[misc]
    Field(Column(key="confidence"), lambda x: Cell(value=x.comparison.confidence if x.effect else None)),
    _kept("p_value"),
    _kept("q_value"),
    Field(Column("launches", right=True), _of_effect(lambda e: Cell(launches_words(e).removesuffix(" launches")))),
    _kept("control_launches", lambda e: e.launches[0]),
    _kept("treatment_launches", lambda e: e.launches[1]),
    _kept("paired", lambda e: "yes" if e.paired else "no"),
    _kept("basis"),
    Field(Column(key="doubts"), lambda x: Cell(value=_doubts(x))),
    _kept("advice"),
    Field(Column(key="control_revision"), lambda x: Cell(value=(x.comparison.revisions or ("", ""))[0])),
    Field(Column(key="treatment_revision"), lambda x: Cell(value=(x.comparison.revisions or ("", ""))[1])),
)
