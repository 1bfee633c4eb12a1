"""The report at the end of a run, as plain text that fits the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

from benchwright.core.job import readable_job
from benchwright.core.quantities import format_bytes, format_duration
from benchwright.core.run import Launch, Result, culprit
from benchwright.core.status import Status
from benchwright.core.summary import Summary
from benchwright.report.base import Report
from benchwright.report.document import ReportSection
from benchwright.report.notes import (
    SharedNote,
    bare,
    benchmark_notes,
    common_remedy,
    log_of,
    machine_notes,
    metric_notes,
    run_notes,
    shared_by_several,
)
from benchwright.report.tables.results import STATUS_ORDER, best_words, spread_cell
from benchwright.report.tables.scores import DEVICES, score_section
from benchwright.report.text.layout import left_out_words, section_lines, table_lines, wrapped
from benchwright.report.text.metrics import memory_words, metric_label
from benchwright.report.text.numbers import counted, format_value, tenths
from benchwright.report.text.one_line import clip, one_line

_MOST_LOG_LINES = 8


class ScreenReporter:
    """Failures first, with reason and the log's last lines; then one block for each benchmark, then what kinds add.

    Of a suite its table first, then failures, then what is to be said of the others, and the score at the end.
    """

    name = "screen"

    def render(self, report: Report) -> str:
        score = score_section(report)
        table = _scores(report, score)
        lines: list[str] = []
        shared = shared_by_several(report)
        results = [(n, r) for n, r in enumerate(report.run.results) if n not in report.added.shown]
        for number, result in sorted(results, key=lambda pair: min(2, STATUS_ORDER[pair[1].status])):
            lines += _aside(number, result, report, shared) if table else _block(number, result, report, shared)
        for section in report.added.sections:
            lines += section_lines(section, report.width)
        lines += _warnings(report, shared)
        lines += _no_room(report, score)
        lines = [*table, *([""] if table and lines else []), *lines, *_closing(report, score)]
        return "\n".join(lines) + "\n" + _verdicts(report)


def _warnings(report: Report, shared: Mapping[str, SharedNote]) -> list[str]:
    """Notes shared by several benchmarks, the machine's state first, and the remedy, once."""
    texts = [f"⚠ {note}" for note in machine_notes(report)]
    texts += [f"{_mark(note.note.severity)} [{note.number}] {note.text()}" for note in shared.values()]
    if remedy := common_remedy(report):
        texts.append(f"→ {remedy}")
    return [line for text in texts for line in wrapped(text, report.width, " ")]


def _verdicts(report: Report) -> str:
    if not report.comparisons:
        return ""  # a plain command need not load what it takes to compare
    from benchwright.report.comparison import verdict_text

    return verdict_text(report.comparisons, width=report.width)


def _scores(report: Report, section: ReportSection | None) -> list[str]:
    """The table, by whichever rule was asked for, and how the devices compare if that was."""
    if section is None:
        return []
    width, (first, *others) = report.width, section.tables
    lines = table_lines(first, width)
    if report.per_device and not any(table.title == DEVICES for table in others):
        lines += ["", " no benchmark ran on several devices"]
    for table in others:
        if table.title != DEVICES:
            lines += ["", clip(f" {table.title}:", width), *(table_lines(table, width) if table.rows else [])]
            lines += [line for text in table.notes for line in wrapped(text, width, " ")]
        elif report.per_device:
            lines += ["", *table_lines(table, width, several=True)]
    return lines


def _aside(number: int, result: Result, report: Report, shared: Mapping[str, SharedNote]) -> list[str]:
    """Details beside the suite's table: the log of a failed benchmark, the metrics of one without a rate, and notes."""
    name, width = one_line(result.benchmark.name), report.width
    if result.status is Status.FAILED:
        return [*_trouble(result, name, report), *_notes(number, report, shared)]
    scored = report.by_rule is not None or _has_score(result, report)
    lines = []
    for s in report.headline(number):
        lines += [] if scored else _metric_lines(s, width)
        lines += [x for note in metric_notes(s) for x in _note(f"{_label(s)}: {bare(note)}", width)]
    lines += _notes(number, report, shared)
    return [clip(f" {name}", width), *lines] if lines else []


def _has_score(result: Result, report: Report) -> bool:
    scores = report.score.benchmarks if report.score is not None else ()
    return any(s.name == result.benchmark.name and s.value is not None for s in scores)


def _block(number: int, result: Result, report: Report, shared: Mapping[str, SharedNote]) -> list[str]:
    summaries, width = report.summaries.get(result.benchmark.name, ()), report.width
    name = one_line(result.benchmark.name)
    if result.status is not Status.OK:
        lines = _trouble(result, name, report)
        if not result.counted:
            return lines
    else:
        head = f" {clip(name, width - 4)}  {' · '.join(_circumstances(result, list(summaries)))}"
        lines = textwrap.wrap(head, width, subsequent_indent="   ", break_on_hyphens=False)
        lines[0] = f" {lines[0].lstrip()}"
    for summary in report.headline(number):
        lines += _metric_lines(summary, width)
        lines += [line for note in metric_notes(summary) for line in _note(str(bare(note)), width)]
    return lines + _notes(number, report, shared)


def _notes(number: int, report: Report, shared: Mapping[str, SharedNote]) -> list[str]:
    """Its own notes; shared ones stand below, and here only their numbers."""
    found = benchmark_notes(number, report)
    lines = [x for note in found if note.text not in shared for x in _note(str(note), report.width, note.severity)]
    below = sorted({shared[note.text].number for note in found if note.text in shared})
    return lines + (_note(f"see {' '.join(f'[{number}]' for number in below)} below", report.width) if below else [])


def _note(text: str, width: int, severity: str = "warning") -> list[str]:
    return wrapped(f"{_mark(severity)} {text}", width - 3, "   ")


def _mark(severity: str) -> str:
    return "·" if severity == "info" else "⚠"


def _trouble(result: Result, name: str, report: Report) -> list[str]:
    width = report.width
    if result.status in (Status.INTERRUPTED, Status.PENDING):
        done = len(result.counted)
        return [clip(f" {name}  {'interrupted' if done else 'not measured yet'}, {done} launches done", width)]
    word = "FAILED" if result.status is Status.FAILED else result.status.value
    reason = f" {result.reason.words}" if result.reason and result.status is Status.FAILED else ""
    head = f" {name}  {word}{reason}: {result.detail or ''}"
    lines = textwrap.wrap(head, width, subsequent_indent="   ", break_on_hyphens=False) or [head]
    bad, log = culprit(result.launches), log_of(result, report)
    if log or (bad and len(result.launches) > 1):
        which = _which(bad, result) if bad else name
        lines.append(clip(f"   {which}" + (", the log's last lines:" if log else ""), width))
    return lines + [clip(f"     | {line}", width) for line in (log.lines[-_MOST_LOG_LINES:] if log else ())]


def _which(launch: Launch, result: Result) -> str:
    measured = [x for x in result.launches if not x.warmup]
    failed = sum(1 for x in measured if x.status is Status.FAILED)
    return readable_job(launch.job) + (f" ({failed} of {len(measured)} launches failed)" if len(measured) > 1 else "")


def launches_words(result: Result, summaries: list[Summary]) -> str:
    """`6 launches × 2 jobs of 1.2 s in turns of 5 s`."""
    count = len({x.position for x in result.counted})
    words = counted(count, "launch", "launches")
    if len(result.counted) > count:
        words += f" × {len(result.counted) // count} jobs"
    duration = next((s.value for s in summaries if s.metric == "process.duration"), None)
    words += "" if duration is None else f" of {format_duration(duration)}"
    return words + ("" if result.turn_s is None else f" in turns of {format_duration(result.turn_s)}")


def _circumstances(result: Result, summaries: list[Summary]) -> Iterator[str]:
    by_metric = {s.metric: s for s in summaries}
    yield launches_words(result, summaries)
    if memory := memory_words(summaries):
        yield f"memory {memory}"
    took = by_metric["process.duration"].value if "process.duration" in by_metric else 0.0
    if "process.cpu_time" in by_metric and took > 0:
        yield f"CPU {by_metric['process.cpu_time'].value / took * 100:.0f} %"
    if gpus := [s.value for s in summaries if s.metric == "gpu.memory"]:
        yield f"GPU memory {format_bytes(max(gpus))}"
    if result.overlap is not None:
        yield f"overlap {tenths(result.overlap)}"


def _label(summary: Summary) -> str:
    label, labels = metric_label(summary.metric), summary.labels
    seat = [word for word in (labels.get("device") or labels.get("job"), labels.get("node")) if word]
    return f"{label} [{' on '.join(seat)}]" if seat else label


def _metric_lines(summary: Summary, width: int) -> list[str]:
    value = format_value(summary.value, summary.unit)
    # A name may be cut, a number never: half of one is another number.
    label = clip(_label(summary), max(width - len(value) - 4, 18))
    spread = _spread(summary)
    line = f"   {label:<18} {value:<20} {spread}".rstrip()
    return [line] if len(line) <= width else [f"   {label:<18} {value}", f"     {spread}".rstrip()]


def _spread(summary: Summary) -> str:
    """The known difference between launches."""
    if summary.half_width is None or summary.half_width >= 1:
        cell = spread_cell(summary, with_interval=False)
        return cell.text if summary.launches > 1 else ""
    cell = spread_cell(summary)
    wider = ", widened" if cell.small.endswith("widened") else ""
    best = best_words(summary)
    return f"{cell.text} (95 %{wider})" + (f"   best {best}" if best else "")


def _no_room(report: Report, score: ReportSection | None) -> list[str]:
    """Which columns were left out, luxuries apart."""
    scores = [table for table in score.tables[:1] if table.rows] if score is not None else []
    return [
        *left_out_words(scores, report.width, "--json"),
        *left_out_words([t for s in report.added.sections for t in s.tables[:1]], report.width - 2, "--json"),
    ]


def _closing(report: Report, score: ReportSection | None) -> list[str]:
    run, width = report.run, report.width
    lines = []
    for note in run_notes(report)[len(machine_notes(report)) :]:
        mark = f"{_mark(note.severity)} " if note in run.notes else ""
        lines += textwrap.wrap(f" {mark}{note}", width, subsequent_indent="   ")
    if score is not None:
        texts = (*score.about, *score.heading[1:])
        lines += [line for text in texts for line in textwrap.wrap(f" {text}", width, subsequent_indent="   ")]
    elif len(run.results) > 1:
        counts = [(s, sum(r.status is s for r in run.results)) for s in STATUS_ORDER if s is not Status.OK]
        words = [f"{count} {status.value}" for status, count in counts if count]
        lines += [f" {', '.join(words)} of {len(run.results)}"] if words else []
    failed = any(log_of(r, report) for n, r in enumerate(run.results) if n not in report.added.shown)
    return [*lines, *([f" all it printed: bw logs {run.id}"] if failed else []), f" saved: {run.folder}"]
