"""Models on the screen: a heading and a table for each, what is to be said of it, and where its time goes."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

import msgspec

from benchwright.core.note import Note
from benchwright.core.results.noted import worst_evidence
from benchwright.core.run import culprit
from benchwright.core.status import Status
from benchwright.report.base import Report
from benchwright.report.models.columns import speedup_doubt
from benchwright.report.models.facts import NOTHING_CLAIMED, USUAL_REFERENCE, checked, told_why
from benchwright.report.models.rows import ModelGroup, ModelRow, model_groups, operators
from benchwright.report.models.table import ModelTable, model_table, profile_words, row_label
from benchwright.report.text.columns import Column, Row, left_out, table
from benchwright.report.text.efficiency import doubts
from benchwright.report.text.numbers import format_value
from benchwright.report.text.one_line import clip, one_line, packed
from benchwright.report.text.remarks import noted, remarks_of_benchmark, remarks_of_metric

_MOST_LOG_LINES = 8
_LAUNCHES = re.compile(r"^\d+ of \d+ launches(, )?")
_FEW_OPERATORS = 5
_FEW_ROWS = 3  # so many are named, of more how many there are
_OPERATORS = (Column("operator"), Column("time", right=True), Column("share", right=True), Column("calls", right=True))


def model_lines(report: Report) -> list[str]:
    """Empty if the run has no model."""
    lines: list[str] = []
    missing: dict[str, None] = {}
    for group in model_groups(report):
        made = model_table(group)
        columns, rows = (*made.index, *made.values), [Row(x.index + x.values, x.trouble) for x in made.lines]
        lines += packed(made.heading, report.width, " ", "   ")
        lines += _table(made, columns, rows, report.width)
        missing |= dict.fromkeys(left_out(columns, rows, report.width - 2) if columns else ())
        lines += _said(group, made, report)
        for row in group.every:
            lines += operator_lines(row, report.width, beside=group.every, most=_FEW_OPERATORS)
    if missing:
        text = f" no room here for: {', '.join(missing)}; a wider terminal shows all, and so does --json"
        lines += textwrap.wrap(text, report.width, subsequent_indent="   ")
    return lines


def operator_lines(row: ModelRow, width: int, *, beside: Sequence[ModelRow] = (), most: int | None = None) -> list[str]:
    """The slowest operators of a profiled model; none if it was not profiled. `beside`: from which rows to tell it apart."""
    found = operators(row)
    if not found:
        return []
    title = f"   where the time goes: {profile_words(row, beside)}"
    shown = found if most is None or len(found) <= most + 1 else found[:most]
    rows = [Row((o.op, format_value(o.seconds, "s"), f"{o.share * 100:.1f} %", o.calls)) for o in shown]
    if len(shown) < len(found):
        rest = found[len(shown) :]
        share = sum(o.share for o in rest)
        seconds = format_value(sum(o.seconds for o in rest), "s")
        rows.append(Row((f"{len(rest)} others ('bw show')", seconds, f"{share * 100:.1f} %", "")))
    return [clip(title, width), *(f"    {line}" for line in table(_OPERATORS, rows, width - 4))]


def _table(made: ModelTable, columns: Sequence[Column], rows: Sequence[Row], width: int) -> list[str]:
    if not columns:  # it was only listed
        return [x for line in made.lines for x in _wrapped(line.trouble or "", width)]
    lines = table(columns, rows, width - 2, whole=True)
    headed = made.values or made.index[0].head != "runtime"  # a runtime alone needs no head
    return [f"  {line}" for line in (lines if headed else lines[1:])]


def _said(group: ModelGroup, made: ModelTable, report: Report) -> list[str]:
    """What was noted, each once with the rows it is about; then the logs of what failed without telling why."""
    labels = {line.row.number: row_label(line, made) for line in made.lines}
    about: dict[str, dict[str, Note]] = {}
    for row in group.every:
        label = labels.get(row.number, f"profile of {row.model.runtime}")
        for note in remarks_of_model(row, report):
            about.setdefault(note.text, {})[label] = note
    rows = {labels.get(row.number, f"profile of {row.model.runtime}") for row in group.every}
    lines: list[str] = []
    for noted_of in about.values():
        where = "" if len(noted_of) == len(rows) else _rows_words(list(noted_of), len(rows))
        evidence = ", ".join(filter(None, (where, _evidence(list(noted_of.values()))))) or None
        note = msgspec.structs.replace(next(iter(noted_of.values())), evidence=evidence)
        lines += _wrapped(f"⚠ {note}", report.width - 3)
    for row in group.every:
        lines += _trouble(row, group, report)
    return lines


def _rows_words(labels: Sequence[str], rows: int) -> str:
    return ", ".join(labels) if len(labels) <= _FEW_ROWS else f"{len(labels)} of {rows} rows"


def _evidence(notes: Sequence[Note]) -> str | None:
    """Of several rows the worst; in how many launches of each it was would say too much."""
    if len(notes) == 1:
        return notes[0].evidence
    plain = [msgspec.structs.replace(n, evidence=_LAUNCHES.sub("", n.evidence or "") or None) for n in notes]
    return worst_evidence(plain)


def remarks_of_model(row: ModelRow, report: Report) -> list[Note]:
    """What stands out in its numbers, what was noted, and what its check could not claim."""
    believed = [s for s in row.summaries if s.metric in ("latency", "rate")]
    found = [Note(text=str(remark)) for s in believed for remark in remarks_of_metric(s)]
    found += [Note(text=str(remark)) for remark in remarks_of_benchmark(believed, report)]
    found += [*(Note(text=text) for text in doubts(row.efficiency)), *noted(row.result)]
    if (doubt := speedup_doubt(row)) is not None:
        found.append(Note(text=doubt))
    if row.precision != row.model.precision:
        found.append(Note(text=f"{row.model.precision} was asked for; the model computes in {row.precision}"))
    elif row.tf32 is not None:
        found.append(Note(text=f"computed in TF32: {row.tf32}"))
    check = checked(row.result)
    if check is not None and row.result.status is Status.OK:
        if not check.claimed and not any(NOTHING_CLAIMED in note.text for note in found):
            found.append(Note(text=check.detail))
        if check.reference not in (None, USUAL_REFERENCE):
            found.append(Note(text=f"the error is against {check.reference}, not {USUAL_REFERENCE}"))
    return list(dict.fromkeys(found))


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(one_line(text), width, initial_indent="   ", subsequent_indent="     ", break_on_hyphens=False)


def _trouble(row: ModelRow, group: ModelGroup, report: Report) -> list[str]:
    """Of a profile its failure, which is in no table; of any failure the log, unless the probe told the reason."""
    result, width = row.result, report.width
    if result.status is not Status.FAILED:
        return []
    lines: list[str] = []
    if row in group.profiles:
        lines = _wrapped(f"profile of {profile_words(row, group.every)} FAILED {result.detail or ''}", width)
    bad = culprit(result.launches)
    tail: Sequence[str] = report.log_tails.get(bad.job, ()) if bad is not None else ()
    if bad is None or not tail or told_why(result):
        return lines
    lines.append(clip(f"   {bad.job}, the log's last lines:", width))
    return lines + [clip(f"     | {line}", width) for line in tail[-_MOST_LOG_LINES:]]
