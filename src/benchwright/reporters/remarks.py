"""Where what stands out in the numbers is said: beside its metric, once for a benchmark, or once for the run."""

from __future__ import annotations

from collections.abc import Sequence

from benchwright.domain.summary import Remark, Summary
from benchwright.reporters.base import Report

_OF_LAUNCHES = "few_launches"  # the same for all metrics of a benchmark


def remarks_of_metric(summary: Summary) -> list[Remark]:
    return [remark for remark in summary.remarks if remark.kind != _OF_LAUNCHES]


def remarks_of_benchmark(summaries: Sequence[Summary], report: Report) -> list[Remark]:
    """What is the same for all its metrics, once; nothing if it is said of the whole run anyway."""
    if any(remark.kind == _OF_LAUNCHES for remark in report.remarks):
        return []
    found = (remark for summary in summaries for remark in summary.remarks if remark.kind == _OF_LAUNCHES)
    return list({remark.text: remark for remark in found}.values())
