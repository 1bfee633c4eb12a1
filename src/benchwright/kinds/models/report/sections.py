"""The models' part of a report: for each a section with a table, its notes, and where its time goes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from benchwright.core.launches import worst_evidence
from benchwright.core.model import BUILT_WITH
from benchwright.core.note import Note
from benchwright.core.quantities import format_duration
from benchwright.core.status import Status
from benchwright.kinds.models.build_names import build_name, corpus_of
from benchwright.kinds.models.corpus.document import CorpusReport, corpus_sections
from benchwright.kinds.models.corpus.entries import corpus_of_reports
from benchwright.kinds.models.corpus.page import corpus_html
from benchwright.kinds.models.report.facts import (
    NOTHING_CLAIMED,
    USUAL_REFERENCE,
    checked,
    fact,
    is_model,
    is_plain_script,
    says_why,
)
from benchwright.kinds.models.report.fields import error_words, models_table
from benchwright.kinds.models.report.load_curve import load_curves
from benchwright.kinds.models.report.rows import TELLING, ModelGroup, ModelRow, grouped, model_rows
from benchwright.kinds.models.report.speedup import speedup_cells
from benchwright.kinds.models.report.table import (
    SHOWN_DIGITS,
    ModelTable,
    heading,
    model_table,
    operators_table,
    profile_words,
)
from benchwright.report.base import Contribution, Report
from benchwright.report.document import Callout, LogTail, ReportSection
from benchwright.report.notes import log_of, metric_notes, result_notes, shared_notes
from benchwright.report.text.metrics import efficiency_doubts
from benchwright.report.text.numbers import format_value

# The details of a model in `show`: its runtime, build, time to a first result, and output check.


_FIRST = (("time.load", "load"), ("time.build", "build"), ("time.first_run", "first run"))


def model_details(row: ModelRow) -> tuple[str, ...]:
    """One paragraph per known detail."""
    texts = {
        "model": _model(row),
        "items": _items(row),
        "runtime": _runtime(fact(row.result, "runtime") or {}),
        "build": _build(fact(row.result, "build") or ()),
        "first result": _first_result(row),
        "a call": _in_runtime(row),
        "outputs": _outputs(row),
    }
    return tuple(f"{what}: {text}" for what, text in texts.items() if text)


def _model(row: ModelRow) -> str:
    inputs = ", ".join(map(str, row.inputs))
    note = next((line.strip() for line in (row.model.source_note or "").splitlines() if line.strip()), "")
    identity = f"{row.model.class_} {row.model.identity[:SHOWN_DIGITS]}".strip()
    return "; ".join(filter(None, (identity, inputs, note)))


def _items(row: ModelRow) -> str:
    """Items per call with the evidence; nothing if it was not measured."""
    if row.items is None:
        return "not known, so rates count calls" if row.measured else ""
    return f"{row.items:,} in a call ({row.items_from})" if row.items_from else f"{row.items:,} in a call"


def _runtime(facts: dict[str, Any]) -> str:
    """`onnxruntime 1.24, CPUExecutionProvider, 2 threads, passive wait, fp32`."""
    threads = facts.get("threads")
    wait = facts.get("wait_policy")
    details = facts.get("details") if isinstance(facts.get("details"), dict) else None
    parts = (
        f"{facts.get('name', '')} {facts.get('version') or ''}".strip(),
        facts.get("provider"),
        facts.get("device"),
        f"{threads} thread{'s' if threads != 1 else ''}" if threads else None,
        f"{wait} wait" if wait else None,
        facts.get("precision"),
        *_arithmetic(details or {}),
    )
    return ", ".join(str(part) for part in parts if part)


def _arithmetic(details: dict[str, Any]) -> Iterator[str]:
    """How it computes on an accelerator, beyond the precision."""
    if details.get("tf32"):
        yield f"TF32 in {details['tf32']}"
    if isinstance(kernels := details.get("attention"), list) and kernels:
        yield f"attention by {' and '.join(map(str, kernels))}"
    if details.get("compile_mode"):
        yield f"mode {details['compile_mode']}"
    if "cudnn_benchmark" in details:
        yield f"cuDNN's benchmark {'on' if details['cudnn_benchmark'] else 'off'}"
    if details.get("deterministic"):
        yield "deterministic"


def _build(steps: Any) -> str:
    """`export 3.1 s, optimise 0.4 s (from the cache)`."""
    words = []
    for step in steps:
        after = " (from the cache)" if step.get("cached") else "" if step.get("ok", True) else " (failed)"
        words.append(f"{step.get('step')} {format_duration(float(step.get('seconds') or 0.0))}{after}")
    return ", ".join(words)


def _first_result(row: ModelRow) -> str:
    whole = row.figure("time.to_first_result")
    if whole is None:
        return ""
    parts = [f"{word} {format_value(s.value, s.unit)}" for name, word in _FIRST if (s := row.figure(name)) is not None]
    script = row.figure("time.script")
    before = "" if script is None else f"; the script before it took {format_value(script.value, script.unit)}"
    return f"{format_value(whole.value, whole.unit)} ({', '.join(parts)}){before}"


def _in_runtime(row: ModelRow) -> str:
    inside, around = row.figure("time.in_runtime"), row.figure("time.around_runtime")
    if inside is None or around is None:
        return ""
    added = format_value(around.value, around.unit)
    return f"{format_value(inside.value, inside.unit)} by the runtime's own clock; calling it from Python adds {added}"


def _outputs(row: ModelRow) -> str:
    check, found = fact(row.result, "check") or {}, checked(row.result)
    figures = check.get("figures") or {}
    words = [
        f"{word} {error_words(figures[name]) if name != 'cosine' else format(figures[name], '.6f')}"
        for name, word in (("relative_l2", "relative L2"), ("max_abs", "max abs"), ("cosine", "cosine"))
        if isinstance(figures.get(name), int | float)
    ]
    if isinstance(figures.get("tolerance"), int | float):
        words.append(f"tolerated {error_words(figures['tolerance'])}")
    against = f" against {figures['reference']}" if figures.get("reference") else ""
    verdict = "" if found is None else "wrong" if not found.ok else "right" if found.claimed else "nothing claimed"
    return "; ".join(
        filter(None, (verdict, ", ".join(words) + against if words else "", str(check.get("detail") or "")))
    )


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
        shown_metrics=frozenset({"op.time"}),
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
    corpus = corpus_of_reports([report])
    return corpus_html(CorpusReport(corpus=corpus, caches=(report.run.folder,), results=()))


def _sections(rows: Sequence[ModelRow], report: Report) -> tuple[ReportSection, ...]:
    """One for each model; of many models the tables of a corpus instead."""
    groups = grouped(rows)
    if len(groups) <= _MOST_SECTIONS:
        return tuple(_section(group, report) for group in groups)

    return corpus_sections(corpus_of_reports([report]))


def _section(group: ModelGroup, report: Report) -> ReportSection:
    made = model_table(group, report.run)
    inputs = dict.fromkeys(", ".join(map(str, row.inputs)) for row in group.every if row.inputs)
    profiles = [table for row in group.every if (table := operators_table(row, group)) is not None]
    return ReportSection(
        heading=heading(group),
        about=tuple(inputs)[:_MOST_INPUTS],
        tables=(made.table, *load_curves(group.rows), *profiles),
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
    return log_of(row.result, report) if row.result.status is Status.FAILED and not says_why(row.result) else None
