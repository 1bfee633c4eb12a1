"""Where what stands out in the numbers is said: beside its metric, once for a benchmark, or once for the run."""

from __future__ import annotations

from collections.abc import Sequence

from benchwright.core.note import Note
from benchwright.core.results.noted import noted_of
from benchwright.core.results.summary import Summary
from benchwright.core.run import Result
from benchwright.core.status import Status
from benchwright.report.base import Report
from benchwright.report.score.screen import warnings_of

_OF_LAUNCHES = "few_launches"  # the same for all metrics of a benchmark


def remarks_of_metric(summary: Summary) -> list[Note]:
    return [remark for remark in summary.remarks if remark.kind != _OF_LAUNCHES]


def remarks_of_benchmark(summaries: Sequence[Summary], report: Report) -> list[Note]:
    """What is the same for all its metrics, once; nothing if it is said of the whole run anyway."""
    if any(remark.kind == _OF_LAUNCHES for remark in report.remarks):
        return []
    found = (remark for summary in summaries for remark in summary.remarks if remark.kind == _OF_LAUNCHES)
    return list({remark.text: remark for remark in found}.values())


def noted(result: Result) -> list[Note]:
    """What was noted when the benchmark was read, checks that warn, and each note of its launches once."""
    found = [Note(text=text) for text in (*result.benchmark.notes, *warnings_of(result))]
    warmups = [x for x in result.launches if x.warmup]
    if failed := [x for x in warmups if x.status is Status.FAILED]:
        found.append(Note(text=f"{len(failed)} of {len(warmups)} warm-up launches failed: {failed[0].detail}"))
    return found + noted_of(result.launches)
