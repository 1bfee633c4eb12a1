"""Where what stands out in the numbers is said: beside its metric, once for a benchmark, or once for the run."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from benchwright.domain.run import Result
from benchwright.domain.status import Status
from benchwright.domain.summary import Remark, Summary
from benchwright.reporters.base import Report
from benchwright.reporters.score import warnings_of

_OF_LAUNCHES = "few_launches"  # the same for all metrics of a benchmark


def remarks_of_metric(summary: Summary) -> list[Remark]:
    return [remark for remark in summary.remarks if remark.kind != _OF_LAUNCHES]


def remarks_of_benchmark(summaries: Sequence[Summary], report: Report) -> list[Remark]:
    """What is the same for all its metrics, once; nothing if it is said of the whole run anyway."""
    if any(remark.kind == _OF_LAUNCHES for remark in report.remarks):
        return []
    found = (remark for summary in summaries for remark in summary.remarks if remark.kind == _OF_LAUNCHES)
    return list({remark.text: remark for remark in found}.values())


class Noted(msgspec.Struct, frozen=True):
    """What was noted of a benchmark: `share` of its launches, where not of the only one; the worst `figure`."""

    text: str
    share: str = ""
    figure: str = ""

    def __str__(self) -> str:
        more = ", ".join(filter(None, (self.share, self.figure)))
        return f"{self.text} ({more})" if more else self.text


def noted(result: Result) -> list[Noted]:
    """What was noted when the benchmark was read, and checks that warn; then each note of its launches once, with how many it concerns."""
    measured = [x for x in result.launches if not x.warmup]
    figures: dict[str, list[str]] = {}
    for launch in measured:
        for note in launch.notes:
            figures.setdefault(note.text, []).append(note.figure or "")
    found = [Noted(text) for text in (*result.benchmark.notes, *warnings_of(result))]
    warmups = [x for x in result.launches if x.warmup]
    if failed := [x for x in warmups if x.status is Status.FAILED]:
        found.append(Noted(f"{len(failed)} of {len(warmups)} warm-up launches failed: {failed[0].detail}"))
    for text, seen in figures.items():
        share = "" if len(measured) == 1 else f"{len(seen)} of {len(measured)} launches"
        found.append(Noted(text, share, min(filter(None, seen), default="")))
    return found
