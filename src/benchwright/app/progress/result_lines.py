"""A result in a few words, as soon as it is there. The report at the end says more."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from benchwright.analysis.summary import summarize
from benchwright.core.numbers.quantities import format_duration
from benchwright.core.run import Launch, culprit
from benchwright.core.status import Status
from benchwright.report.text.metrics import headline_metrics, metric_label
from benchwright.report.text.numbers import counted, format_value, percent
from benchwright.report.text.one_line import one_line

_OF_WORKERS = ("total", "average_aggregate")  # depend on the number of workers, which only the report knows


def headline(launches: Sequence[Launch], *, took: bool = False) -> str:
    """`829.4 samples/s ± 1.2 % (8 launches)`: the first metric of the report; failed launches are counted.

    `took`: with the duration of the first launch, unless that is the metric.
    """
    good = [x for x in launches if x.counts] or [x for x in launches if x.status is Status.OK]
    failed = sum(x.status is not Status.OK for x in launches)
    words = f"{failed} of {counted(len(launches), 'launch', 'launches')} failed" if failed else ""
    plain = [replace(x, measurements=tuple(m for m in x.measurements if m.aggregate not in _OF_WORKERS)) for x in good]
    found = headline_metrics(summarize(plain, percentiles=False))
    if not found:
        return words or "ok"
    first = found[0]
    about = "" if first.half_width is None else f" ± {percent(first.half_width)}"
    count = f" ({counted(first.launches, 'launch', 'launches')})" if first.launches > 1 else ""
    name = "" if first.metric in ("rate", "process.duration") else f"{metric_label(first.metric)} "
    text = f"{name}{format_value(first.value, first.unit)}{about}{count}"
    if took and first.metric != "process.duration" and launches[0].duration_s is not None:
        text += f", {format_duration(launches[0].duration_s)}"
    return one_line(f"{words}; {text}" if words else text)


def failure_words(launches: Sequence[Launch]) -> str | None:
    """None: all of them went well. A warm-up launch that failed counts, too."""
    bad = culprit(launches) or next((x for x in launches if x.status is not Status.OK), None)
    if bad is None:
        return None
    reason = "" if bad.reason is None else bad.reason.value.replace("_", " ")
    why = one_line(bad.detail or reason)
    word = "FAILED" if bad.status is Status.FAILED else bad.status.value
    after = "" if bad.duration_s is None else f" after {format_duration(bad.duration_s)}"
    return f"{word}{after}" + (f": {why}" if why else "")
