"""The report at the end of a run, as plain text that fits the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from benchwright.core.numbers.quantities import format_bytes, format_duration
from benchwright.core.results.summary import Summary
from benchwright.core.run import Launch, Result, culprit
from benchwright.core.status import Status
from benchwright.report.base import Report
from benchwright.report.models.facts import is_model
from benchwright.report.models.screen import model_lines
from benchwright.report.score.screen import closing_lines, score_lines
from benchwright.report.text.efficiency import doubts
from benchwright.report.text.headline_metrics import metric_label, telling
from benchwright.report.text.memory import memory_words
from benchwright.report.text.numbers import format_ends
from benchwright.report.text.numbers import format_number as format_number
from benchwright.report.text.numbers import format_value as format_value
from benchwright.report.text.one_line import one_line
from benchwright.report.text.remarks import noted, remarks_of_benchmark, remarks_of_metric

_MOST_LOG_LINES = 8
WORTH_SAYING = 1.05  # from here on it is said by how much an interval was widened


class ScreenReporter:
    """Failures first, with reason and the log's last lines; then one block for each benchmark, and a table for each model.

    Of a suite its table first, then failures, then what is to be said of the others, and the score at the end.
    """

    name = "screen"

    def render(self, report: Report) -> str:
        order = {Status.FAILED: 0, Status.INTERRUPTED: 1, Status.PENDING: 1, Status.SKIPPED: 2, Status.OK: 3}
        table = score_lines(report)
        show = _aside if table else _block
        lines: list[str] = []
        for result in sorted(report.run.results, key=lambda r: order[r.status]):
            if not is_model(result):
                lines += show(result, report)
        lines += model_lines(report)
        lines = [*table, *([""] if table and lines else []), *lines, *_closing(report)]
        return "\n".join(lines) + "\n"


def _aside(result: Result, report: Report) -> list[str]:
    """What the suite's table does not say of a benchmark: the log of one that failed, and remarks."""
    name, width = one_line(result.benchmark.name), report.width
    if result.status is Status.FAILED:
        return _trouble(result, name, width, report.log_tails) + _remarks(result, width)
    shown = telling(report.summaries.get(result.benchmark.name, ()))
    found = [f"{_label(s)}: {remark}" for s in shown for remark in remarks_of_metric(s)]
    found += [str(remark) for remark in remarks_of_benchmark(shown, report)]
    found += doubts(report.efficiency.get(result.benchmark.name, ()))
    lines = [line for text in found for line in _remark(text, width)] + _remarks(result, width)
    return [_clip(f" {name}", width), *lines] if lines else []


def _block(result: Result, report: Report) -> list[str]:
    summaries, width = report.summaries.get(result.benchmark.name, ()), report.width
    name = one_line(result.benchmark.name)
    if result.status is not Status.OK:
        lines = _trouble(result, name, width, report.log_tails)
        if not result.counted:
            return lines
    else:
        head = f" {_clip(name, width - 4)}  {_circumstances(result, summaries)}"
        lines = textwrap.wrap(head, width, subsequent_indent="   ", break_on_hyphens=False)
        lines[0] = f" {lines[0].lstrip()}"
    shown = telling(summaries)
    for summary in shown:
        lines += _metric_lines(summary, width)
        for remark in remarks_of_metric(summary):
            lines += _remark(str(remark), width)
    for remark in remarks_of_benchmark(shown, report):
        lines += _remark(str(remark), width)
    for text in doubts(report.efficiency.get(result.benchmark.name, ())):
        lines += _remark(text, width)
    return lines + _remarks(result, width)


def _trouble(result: Result, name: str, width: int, log_tails: Mapping[str, Sequence[str]]) -> list[str]:
    if result.status in (Status.INTERRUPTED, Status.PENDING):
        done = len(result.counted)
        return [_clip(f" {name}  {'interrupted' if done else 'not measured yet'}, {done} launches done", width)]
    word = "FAILED" if result.status is Status.FAILED else result.status.value
    reason = f" {result.reason.value.replace('_', ' ')}" if result.reason and result.status is Status.FAILED else ""
    head = f" {name}  {word}{reason}: {result.detail or ''}"
    lines = textwrap.wrap(head, width, subsequent_indent="   ", break_long_words=True) or [head]
    bad = culprit(result.launches)
    tail = list(log_tails.get(bad.job, ())) if bad else []
    if bad and (tail or len(result.launches) > 1):
        lines.append(_clip(f"   {_which(bad, result)}" + (", the log's last lines:" if tail else ""), width))
    return lines + [_clip(f"     | {line}", width) for line in tail[-_MOST_LOG_LINES:]]


def _which(launch: Launch, result: Result) -> str:
    measured = [x for x in result.launches if not x.warmup]
    failed = sum(1 for x in measured if x.status is Status.FAILED)
    return f"{launch.job}" + (f" ({failed} of {len(measured)} launches failed)" if len(measured) > 1 else "")


def _circumstances(result: Result, summaries: Sequence[Summary]) -> str:
    by_metric = {s.metric: s for s in summaries}
    count = len({x.position for x in result.counted})
    parts = [f"{count} launch{'es' if count != 1 else ''}"]
    if len(result.counted) > count:
        parts[0] += f" × {len(result.counted) // count} jobs"
    if "process.duration" in by_metric:
        parts[0] += f" of {format_duration(by_metric['process.duration'].value)}"
    if result.turn_s is not None:
        parts[0] += f" in turns of {format_duration(result.turn_s)}"
    if memory := memory_words(summaries):
        parts.append(f"memory {memory}")
    took = by_metric["process.duration"].value if "process.duration" in by_metric else 0.0
    if "process.cpu_time" in by_metric and took > 0:
        parts.append(f"CPU {by_metric['process.cpu_time'].value / took * 100:.0f} %")
    gpus = [s for s in summaries if s.metric == "gpu.memory"]
    if gpus:
        parts.append(f"GPU memory {format_bytes(max(s.value for s in gpus))}")
    if result.overlap is not None:
        parts.append(f"overlap {result.overlap * 100:.1f} %")
    return " · ".join(parts)


def _label(summary: Summary) -> str:
    label = metric_label(summary.metric)
    labels = summary.labels
    seat = [word for word in (labels.get("device") or labels.get("job"), labels.get("node")) if word]
    return f"{label} [{' on '.join(seat)}]" if seat else label


def _metric_lines(summary: Summary, width: int) -> list[str]:
    label = _label(summary)
    value = format_value(summary.value, summary.unit)
    # A name may be cut, a number never: half of one is another number.
    label = _clip(label, max(width - len(value) - 4, 18))
    spread = _spread(summary)
    line = f"   {label:<18} {value:<24} {spread}".rstrip()
    if len(line) <= width:
        return [line]
    return [f"   {label:<18} {value}", f"     {spread}".rstrip()]


def _spread(summary: Summary) -> str:
    """What is known about the difference between launches."""
    half = summary.half_width
    if half is not None and half < 1:
        wider = ", widened" if summary.interval is not None and summary.interval.widened > WORTH_SAYING else ""
        best, _ = format_ends(summary.best, summary.value, summary.unit)
        return f"± {half * 100:.1f} % (95 %{wider})   best {best}"
    if summary.launches > 1:
        return " to ".join(format_ends(min(summary.values), max(summary.values), summary.unit))
    return ""


def _remarks(result: Result, width: int) -> list[str]:
    return [line for note in noted(result) for line in _remark(str(note), width, note.severity)]


def _remark(text: str, width: int, severity: str = "warning") -> list[str]:
    sign = "·" if severity == "info" else "⚠"
    return textwrap.wrap(f"{sign} {text}", width - 3, initial_indent="   ", subsequent_indent="     ")


def _closing(report: Report) -> list[str]:
    run, width = report.run, report.width
    lines = [line for note in run.notes for line in textwrap.wrap(f" ⚠ {note.text}", width, subsequent_indent="   ")]
    for remark in report.remarks:
        lines += textwrap.wrap(f" {remark}", width, subsequent_indent="   ")
    counts = {status: sum(1 for r in run.results if r.status is status) for status in Status}
    words = [
        f"{counts[s]} {s.value}"
        for s in (Status.FAILED, Status.SKIPPED, Status.INTERRUPTED, Status.PENDING)
        if counts[s]
    ]
    summing_up = closing_lines(report)
    if words and len(run.results) > 1 and not summing_up:
        lines.append(f" {', '.join(words)} of {len(run.results)}")
    lines += summing_up
    lines.append(f" saved: {run.folder}")
    return lines


def _clip(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 1] + "…"
