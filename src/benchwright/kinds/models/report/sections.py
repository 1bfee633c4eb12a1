"""The models' part of a report: for each a section with a table, its notes, and where its time goes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from benchwright.core.model import BUILT_WITH
from benchwright.core.note import Note
from benchwright.core.results.launches import worst_evidence
from benchwright.core.status import Status
from benchwright.kinds.models.build_names import build_name, corpus_of
from benchwright.kinds.models.report.details import model_details
from benchwright.kinds.models.report.facts import (
    NOTHING_CLAIMED,
    USUAL_REFERENCE,
    checked,
    fact,
    is_model,
    is_plain_script,
    told_why,
)
from benchwright.kinds.models.report.fields import models_table
from benchwright.kinds.models.report.rows import TELLING, ModelGroup, ModelRow, grouped, model_rows
from benchwright.kinds.models.report.speedup import speedup_cells
from benchwright.kinds.models.report.table import ModelTable, heading, model_table, operators_table, profile_words
from benchwright.report.base import Contribution, Report
from benchwright.report.document import Callout, LogTail, ReportSection
from benchwright.report.notes import log_of, metric_notes, result_notes, shared_notes
from benchwright.report.text.metrics import efficiency_doubts

_LAUNCHES = re.compile(r"^\d+ of \d+ launches(, )?")
_FEW_ROWS = 3  # named individually; more are counted
_MOST_INPUTS = 4
_MOST_CARDS = 200  # results that a page shows one by one
_MOST_SECTIONS = 30  # models with a section of their own; more are rows of one table
_OF_MODEL = (
    *("script", "args", "file", "zoo", "scale", "class", "identity", "weights", "parameters", "place", "inputs"),
    *("items", "items_from", "set_to_eval"),
    *("runtime", "device", "precision", "threads", "streams", "profile", "source_note"),
    *BUILT_WITH,
    *("sequence_digest", "stops_after"),
)


def contribution(report: Report) -> Contribution:
    """`report`: of the same run, without the kinds' parts. Nothing if the run has no model."""
    rows = model_rows(report)
    if not rows:
        return Contribution()
    results = dict(enumerate(report.run.results))
    scripts = {number: r for number, r in results.items() if not is_model(r)}
    alone = all(map(is_plain_script, scripts.values()))  # in a folder of scripts, one often has no model
    numbers = [row.number for row in rows]
    found = Contribution(
        title="Models",
        shown=frozenset(numbers),
        told=frozenset({"op.time"}),
        headline={row.number: () if row.model.stops_after else TELLING for row in rows},
        bodies={row.number: _body(row) for row in rows},
    )
    if report.brief:
        return found
    return msgspec.structs.replace(
        found,
        sections=_sections(rows, report),
        page=partial(_page, report) if alone and len(rows) > _MOST_CARDS else None,
        details={row.number: model_details(row) for row in rows},
        table=models_table(rows, scripts, report.run) if alone else None,
    )


def _page(report: Report) -> str:
    """That of a corpus."""
    from benchwright.kinds.models.corpus.document import CorpusReport
    from benchwright.kinds.models.corpus.entries import corpus_of_reports
    from benchwright.kinds.models.corpus.page import corpus_html

    corpus = corpus_of_reports([report])
    return corpus_html(CorpusReport(corpus=corpus, caches=(report.run.folder,), results=()))


def _sections(rows: Sequence[ModelRow], report: Report) -> tuple[ReportSection, ...]:
    """One for each model; of many models the tables of a corpus instead."""
    groups = grouped(rows)
    if len(groups) <= _MOST_SECTIONS:
        return tuple(_section(group, report) for group in groups)
    from benchwright.kinds.models.corpus.document import corpus_sections
    from benchwright.kinds.models.corpus.entries import corpus_of_reports

    return corpus_sections(corpus_of_reports([report]))


def _section(group: ModelGroup, report: Report) -> ReportSection:
    made = model_table(group, report.run)
    inputs = dict.fromkeys(", ".join(map(str, row.inputs)) for row in group.every if row.inputs)
    profiles = [table for row in group.every if (table := operators_table(row, group)) is not None]
    return ReportSection(
        heading=heading(group),
        about=tuple(inputs)[:_MOST_INPUTS],
        tables=(made.table, *profiles),
        callouts=tuple(Callout(note) for note in _notes(group, made, report)),
        logs=tuple(log for row in group.every if (log := _log(row, report)) is not None),
    )


def _body(row: ModelRow) -> Mapping[str, object]:
    """The model, and what it was measured on."""
    body = msgspec.to_builtins(row.model) | {"items": row.items, "items_from": row.items_from}
    labels = row.result.benchmark.labels
    known = {"build": build_name(row.model, labels), "corpus": corpus_of(row.model, labels) or None}
    built = {"built": fact(row.result, "built")} if row.model.stops_after else {}
    return {"model": {name: body.get(name) for name in _OF_MODEL} | known | speedup_cells(row.against), **built}


def _notes(group: ModelGroup, made: ModelTable, report: Report) -> list[Note]:
    """Each note once, with its rows; and failed profiles, which are in no table."""
    about: dict[str, dict[str, Note]] = {}
    labels = {row.number: made.labels.get(row.number, f"profile of {row.model.runtime}") for row in group.every}
    for row in group.every:
        for note in notes_of_model(row, report):
            about.setdefault(note.text, {})[labels[row.number]] = note
    count = len(set(labels.values()))
    found = []
    for noted in about.values():
        where = "" if len(noted) == count else _rows_words(list(noted), count)
        evidence = ", ".join(filter(None, (where, _evidence(list(noted.values()))))) or None
        found.append(msgspec.structs.replace(next(iter(noted.values())), evidence=evidence))
    for row in group.profiles:
        if row.result.status is Status.FAILED:
            text = f"profile of {profile_words(row, group.every)} FAILED {row.result.detail or ''}"
            found.append(Note(text=text, severity="error"))
    return found


def _rows_words(labels: Sequence[str], rows: int) -> str:
    return ", ".join(labels) if len(labels) <= _FEW_ROWS else f"{len(labels)} of {rows} rows"


def _evidence(notes: Sequence[Note]) -> str | None:
    """The worst of several rows; launch counts would be too much."""
    if len(notes) == 1:
        return notes[0].evidence
    plain = [msgspec.structs.replace(n, evidence=_LAUNCHES.sub("", n.evidence or "") or None) for n in notes]
    return worst_evidence(plain)


def notes_of_model(row: ModelRow, report: Report) -> list[Note]:
    """Notes on its numbers, of its run, and on outputs that could not be judged."""
    believed = [s for s in row.summaries if s.metric in ("latency", "rate")]
    found = [note for s in believed for note in metric_notes(s)]
    found += shared_notes(believed, report)
    found += [*(Note(text=text) for text in efficiency_doubts(row.efficiency)), *result_notes(row.result)]
    if row.against is not None and (doubt := row.against.remark) is not None:
        found.append(doubt)
    if row.precision != row.model.precision:
        found.append(Note(text=f"{row.model.precision} requested; the model computes in {row.precision}"))
    elif row.tf32 is not None:
        found.append(Note(text=f"computed in TF32: {row.tf32}"))
    check = checked(row.result)
    if check is not None and row.result.status is Status.OK:
        if not check.claimed and not any(NOTHING_CLAIMED in note.text for note in found):
            found.append(Note(text=check.detail))
        if check.reference not in (None, USUAL_REFERENCE):
            found.append(Note(text=f"the error is against {check.reference}, not {USUAL_REFERENCE}"))
    return list(dict.fromkeys(found))


def _log(row: ModelRow, report: Report) -> LogTail | None:
    """The log of a failure, unless the probe reported the reason."""
    return log_of(row.result, report) if row.result.status is Status.FAILED and not told_why(row.result) else None
