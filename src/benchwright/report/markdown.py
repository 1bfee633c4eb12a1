"""Tables in Markdown, for a pull request or a page: failures first, then the metrics.

Names and whatever else comes from outside stands in code spans, where neither Markdown nor HTML nor a mention works.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from itertools import filterfalse

from benchwright.core.note import Note
from benchwright.core.results.summary import Summary
from benchwright.core.run import Result, Run
from benchwright.core.status import Status
from benchwright.report.base import Report
from benchwright.report.models.facts import is_model, told_why
from benchwright.report.models.rows import model_groups, model_rows, operators
from benchwright.report.models.screen import remarks_of_model
from benchwright.report.models.table import TableLine, model_table
from benchwright.report.score.markdown import Tables
from benchwright.report.screen import WORTH_SAYING, format_value
from benchwright.report.text.efficiency import doubts
from benchwright.report.text.headline_metrics import telling
from benchwright.report.text.remarks import noted, remarks_of_benchmark, remarks_of_metric

# Of little interest beside what was asked for: they are shown folded.
_ORDER = {Status.FAILED: 0, Status.INTERRUPTED: 1, Status.PENDING: 1, Status.SKIPPED: 2}
_MOST_LOG_LINES = 20
_UNPRINTABLE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SPECIAL = re.compile(r"([\\`*_\[\]#~|])")


class MarkdownReporter:
    name = "markdown"

    def render(self, report: Report) -> str:
        blocks = [f"### {code(report.run.name)}: {_outcome(report.run)}"]
        troubled = sorted(
            (r for r in report.run.results if r.status is not Status.OK), key=lambda result: _ORDER[result.status]
        )
        blocks += Tables(code, plain, lambda head, rows, numbers: _table(head, rows, numbers=numbers)).blocks(report)
        blocks += _models(report)
        blocks += _troubles([r for r in troubled if not is_model(r)], report.log_tails)
        blocks += _logs([r for r in troubled if is_model(r) and not told_why(r)], report.log_tails)
        blocks += _metrics(report)
        blocks += _remarks(report)
        return "\n\n".join(blocks) + "\n"


def code(text: str) -> str:
    """A code span of one line that holds any text, inside a table too."""
    line = " ".join(_UNPRINTABLE.sub(" ", text).split()) or " "
    longest = max((len(ticks) for ticks in re.findall(r"`+", line)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest else ""
    return f"{fence}{space}{line}{space}{fence}".replace("|", "\\|")


def plain(text: str) -> str:
    """Running text of one line, with nothing left in it that Markdown, HTML or a mention could take up."""
    line = " ".join(_UNPRINTABLE.sub(" ", text).split())
    return _SPECIAL.sub(r"\\\1", html.escape(line, quote=False)).replace("@", "@<!-- -->")


def _outcome(run: Run) -> str:
    counts = {status: sum(1 for r in run.results if r.status is status) for status in Status}
    words = [f"{counts[status]} {status.value}" for status in (*_ORDER, Status.OK) if counts[status]]
    return ", ".join(words) or "nothing was measured"


def _troubles(results: Sequence[Result], log_tails: Mapping[str, Sequence[str]]) -> list[str]:
    if not results:
        return []
    rows = [[code(r.benchmark.name), _status(r), code(r.detail) if r.detail else ""] for r in results]
    return [_table(["benchmark", "status", "detail"], rows), *_logs(results, log_tails)]


def _status(result: Result) -> str:
    word = f"**{result.status.value}**" if result.status is Status.FAILED else result.status.value
    return word + (f": {result.reason.value.replace('_', ' ')}" if result.reason else "")


def _logs(results: Sequence[Result], log_tails: Mapping[str, Sequence[str]]) -> list[str]:
    """Of each failed benchmark the last lines of the first log that is known, folded."""
    blocks = []
    for result in results:
        jobs = [launch.job for launch in result.launches if launch.status is Status.FAILED and not launch.warmup]
        job = next((job for job in jobs if log_tails.get(job)), None)
        if job is None:
            continue
        lines = [_UNPRINTABLE.sub("", line) for line in log_tails[job][-_MOST_LOG_LINES:]]
        fence = "`" * max(3, 1 + max((len(t) for line in lines for t in re.findall(r"`+", line)), default=0))
        fenced = "\n".join([f"{fence}text", *lines, fence])
        blocks.append(_folded(f"the log's last lines: {job}", fenced))
    return blocks


def _models(report: Report) -> list[str]:
    """A table for each model, as on the screen; below it, folded, where the time goes."""
    blocks = []
    for group in model_groups(report):
        made = model_table(group)
        blocks.append(f"#### {code(made.heading[0])} {' · '.join(map(plain, made.heading[1:]))}".rstrip())
        heads = [c.head for c in (*made.index, *made.values)] + ([] if made.values else ["result"])
        rows = [_model_row(line, len(heads)) for line in made.lines]
        if rows:
            blocks.append(_table([plain(head) for head in heads], rows, numbers=len(made.values)))
        for row in group.every:
            if found := operators(row):
                cells = [[code(o.op), _value(o.seconds, "s"), f"{o.share * 100:.1f} %", plain(o.calls)] for o in found]
                body = _table(["operator", "time", "share", "calls"], cells, numbers=3)
                blocks.append(_folded(f"where the time goes: {row.result.benchmark.name}", body))
    return blocks


def _model_row(line: TableLine, columns: int) -> list[str]:
    """Of one without numbers what is the trouble, in the first column that is free."""
    cells = [code(word) if word else "" for word in line.index]
    cells += [code(line.trouble)] if line.trouble is not None else [plain(word) for word in line.values]
    return cells + [""] * (columns - len(cells))


def _metrics(report: Report) -> list[str]:
    shown, aside = [], []
    for result in report.run.results:
        summaries = report.summaries.get(result.benchmark.name, ())
        chosen = [] if is_model(result) else telling(summaries)
        shown += [_metric_row(result, s) for s in chosen]
        aside += [_metric_row(result, s) for s in summaries if s not in chosen and s.metric != "op.time"]
    head = ["benchmark", "metric", "value", "95 % interval", "launches"]
    blocks = [_table(head, shown, numbers=3)] if shown else []
    return blocks + ([_folded("memory, CPU, devices and more", _table(head, aside, numbers=3))] if aside else [])


def _metric_row(result: Result, summary: Summary) -> list[str]:
    labels = " ".join(f"{key}={value}" for key, value in sorted(summary.labels.items()) if key != "loop")
    metric = code(summary.metric) + (f" {code(labels)}" if labels else "")
    interval = "–"
    if summary.interval is not None:
        ends = (summary.interval.low, summary.interval.high)
        interval = " to ".join(_value(end, summary.unit) for end in ends)
        interval += ", widened" if summary.interval.widened > WORTH_SAYING else ""
    value = _value(summary.value, summary.unit)
    return [code(result.benchmark.name), metric, value, interval, str(summary.launches)]


def _value(value: float, unit: str | None) -> str:
    return plain(format_value(value, unit))


def _remarks(report: Report) -> list[str]:
    """Each once: what was noted of the run, of benchmarks and launches, and what stands out in the metrics of the first table."""
    texts = {plain(note.text): None for note in report.run.notes}
    texts |= {plain(str(remark)): None for remark in report.remarks}
    for row in model_rows(report):
        texts |= {
            f"{code(row.result.benchmark.name)}: {plain(str(note))}": None for note in remarks_of_model(row, report)
        }
    for result in filterfalse(is_model, report.run.results):
        name = code(result.benchmark.name)
        found = [*map(str, noted(result)), *doubts(report.efficiency.get(result.benchmark.name, ()))]
        texts |= {f"{name}: {plain(text)}": None for text in found}
        chosen = telling(report.summaries.get(result.benchmark.name, ()))
        for summary in chosen:
            metric = code(summary.metric)
            texts |= {f"{name} {metric}: {_remark(r)}": None for r in remarks_of_metric(summary)}
        texts |= {f"{name}: {_remark(r)}": None for r in remarks_of_benchmark(chosen, report)}
    return ["\n".join(f"- ⚠ {text}" for text in texts)] if texts else []


def _remark(remark: Note) -> str:
    return plain(str(remark))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: int = 0) -> str:
    """The last `numbers` columns are set to the right."""
    rule = ["---"] * (len(head) - numbers) + ["---:"] * numbers
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *rows))


def _folded(title: str, content: str) -> str:
    words = html.escape(" ".join(_UNPRINTABLE.sub(" ", title).split()))
    return f"<details><summary><code>{words}</code></summary>\n\n{content}\n\n</details>"
