"""The table of percentiles: a row for each metric."""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchwright.core.summary import Summary
from benchwright.report.document import Cell, Column, Field, ReportTable, table_of, word
from benchwright.report.text.metrics import PERCENTILES, bound_words, metric_name, percentile_name
from benchwright.report.text.numbers import format_value, short_unit


def percentiles_table(summaries: Sequence[Summary]) -> ReportTable:
    """Of each metric with enough samples, but not of each rank: those are in run.json."""
    shown = [s for s in summaries if s.percentiles and "rank" not in s.labels]
    fields: list[Field[Summary]] = [
        Field(Column("metric"), lambda s: word(metric_name(s.metric, s.labels))),
        Field(Column("samples", right=True, setting=True), lambda s: word(f"{s.percentiles[0].samples:,}")),
        Field(Column("percentiles"), _percentiles),
    ]
    return table_of(fields, shown, title="Percentiles of samples", opened=False, notes=(f"Percentiles {PERCENTILES}.",))


def _percentiles(s: Summary) -> Cell:
    """Percentiles with a bound, then the others with the reason, once."""
    unit = short_unit(s.unit)
    figures = {p: f"{percentile_name(p)} {format_value(p.value, unit)}" for p in s.percentiles}
    words = [f"{text} ({bound_words(p, unit)})" for p, text in figures.items() if p.bound is not None]
    open_ended = [p for p in figures if p.bound is None]
    if open_ended:
        needed = " and ".join(f"{p.needed:,}" for p in open_ended if p.needed is not None)
        reason = re.sub(r"(?<= of )[\d,]+(?=\)$)", needed, bound_words(open_ended[0], unit))
        words.append(f"{', '.join(figures[p] for p in open_ended)} ({reason})")
    return Cell("; ".join(words))
