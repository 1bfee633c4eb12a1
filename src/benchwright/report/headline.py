"""A run in a few words: what a list of runs shows of each."""

from __future__ import annotations

from benchwright.report.base import Report
from benchwright.report.text.metrics import metric_name
from benchwright.report.text.numbers import counted, format_number, format_value, short_unit

_MOST = 3  # benchmarks that are named


def headline_words(report: Report) -> str:
    """`score 573.7 over 4 of 6` of a suite; else what each benchmark reached: `rate 1,340.0 items/s`; empty without numbers."""
    score = report.score
    if score is not None and score.value is not None:
        over = f" over {score.counted} of {score.expected}" if score.counted < score.expected else ""
        return f"score {format_number(score.value)}{over}"
    found = []
    for number, result in enumerate(report.run.results):
        if summary := next(iter(report.headline(number)), None):
            figure = format_value(summary.value, short_unit(summary.unit))
            alone = len(report.run.results) == 1
            found.append(
                f"{metric_name(summary.metric, {})} {figure}" if alone else f"{result.benchmark.name}: {figure}"
            )
    more = [f"and {counted(len(found) - _MOST, 'more', 'more')}"] if len(found) > _MOST else []
    return " ".join([", ".join(found[:_MOST]), *more]).strip()
