"""The tables of a corpus, for every format: runtimes, funnel, causes, and the matrix of models and runtimes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from benchwright.core.quantities import format_duration
from benchwright.kinds.models.corpus.causes import CORRECT, FASTER, FOUND, ONLY_BUILT, RAN, STAGES
from benchwright.kinds.models.corpus.entries import Corpus, CorpusEntry, CorpusModel, RuntimeVariant
from benchwright.kinds.models.corpus.summaries import (
    Cause,
    RuntimeSummary,
    TaskSummary,
    causes_of,
    runtime_summaries,
    task_summaries,
)
from benchwright.kinds.models.report.fields import error_words
from benchwright.kinds.models.report.speedup import MARGIN
from benchwright.kinds.models.report.table import count_words
from benchwright.report.document import OPTIONAL, Cell, Column, Field, ReportTable, Row, table_of, word
from benchwright.report.text.numbers import format_value, percent

_FEW_MODELS, _FEW_CAUSES, _FEW_RUNTIMES = 20, 12, 2  # where room is short
_MOST_EXAMPLES = 160
_WRONG = "wrong"
# Why a cell has no time, in a word.
_SHORT = {FOUND: "not found", "built": "not built", "exported": "export", "compiled": "compile", "ran": "failed"}


def runtimes_table(corpus: Corpus) -> ReportTable:
    """Success and speed-up of each runtime."""
    summaries = runtime_summaries(corpus)
    fields: list[Field[RuntimeSummary]] = [
        Field(Column("runtime", "runtime", quoted=True), lambda s: word(str(s.variant))),
        _count("models", "models", lambda s: s.models),
        _count("not yet", "waiting", lambda s: s.waiting or None),
        _count("right", "right", lambda s: s.right),
        Field(
            Column("success", "success", right=True, hint="right results of all models tried"),
            lambda s: Cell("" if s.success is None else percent(s.success), s.success, share=s.success),
        ),
        Field(
            Column("speed-up", "speedup", right=True, hint="geometric mean of the speed-up over eager, by throughput"),
            lambda s: Cell("" if s.speedup is None else f"{s.speedup:.2f}", s.speedup),
        ),
        _count("over", "speedup_models", lambda s: s.compared if s.compared else None),
        Field(
            Column("from – to", right=True, drop_priority=3),
            lambda s: Cell("" if s.slowest is None else f"{s.slowest:.2f} – {s.fastest:.2f}"),
        ),
        Field(Column(key="speedup_least"), lambda s: Cell(value=s.slowest)),
        Field(Column(key="speedup_most"), lambda s: Cell(value=s.fastest)),
        _count("doubtful", "doubtful", lambda s: s.doubtful or None, drop_priority=2),
        Field(
            Column(
                "median",
                "latency_median_s",
                right=True,
                drop_priority=1,
                hint="median latency over the models that ran",
            ),
            lambda s: Cell("" if s.latency_s is None else format_value(s.latency_s, "s"), s.latency_s),
        ),
        Field(
            Column("builds", "builds_s", right=True, drop_priority=4),
            lambda s: Cell("" if s.build_s is None else format_duration(s.build_s), s.build_s),
        ),
    ]
    return table_of(fields, summaries, title="Runtimes", notes=_about_speedups(summaries))


def _about_speedups(summaries: Sequence[RuntimeSummary]) -> tuple[str, ...]:
    if all(s.variant.is_eager for s in summaries):
        return ()
    notes = [
        "speed-up: the geometric mean over models with a right result on this runtime and on eager in the same run"
    ]
    if doubtful := sum(s.doubtful for s in summaries):
        notes.append(f"{doubtful} speed-ups measured under unlike conditions are left out of it")
    return tuple(notes)


def _count(
    title: str, key: str, count: Callable[[RuntimeSummary], int | None], drop_priority: int = 0
) -> Field[RuntimeSummary]:
    def cell(summary: RuntimeSummary) -> Cell:
        found = count(summary)
        return Cell("" if found is None else f"{found:,}", found)

    return Field(Column(title, key, right=True, drop_priority=drop_priority), cell)


def funnel_table(corpus: Corpus) -> ReportTable:
    """How many models passed each stage."""
    fields: list[Field[RuntimeSummary]] = [
        Field(Column("runtime", "runtime", quoted=True), lambda s: word(str(s.variant)))
    ]
    fields += [_stage(stage) for stage in STAGES]
    summaries = runtime_summaries(corpus)
    note = "a model that fails a stage passes none of the later ones"
    note += "" if all(s.variant.is_eager for s in summaries) else f"; faster: by more than {MARGIN * 100:g} %"
    return table_of(fields, summaries, title="How far they get", notes=(note,))


def _stage(stage: str) -> Field[RuntimeSummary]:
    def cell(summary: RuntimeSummary) -> Cell:
        count = summary.passed[stage]
        share = count / summary.models if count is not None and summary.models and stage != FOUND else None
        return Cell("" if count is None else f"{count:,}", count, share=share)

    return Field(Column(stage, stage, right=True), cell)


def tasks_table(corpus: Corpus) -> ReportTable:
    """Success and speed-up of each runtime by the task of the models."""

    def count(title: str, key: str, of: Callable[[RuntimeSummary], int | None]) -> Field[TaskSummary]:
        def cell(summary: TaskSummary) -> Cell:
            found = of(summary.runtime)
            return Cell("" if found is None else f"{found:,}", found)

        return Field(Column(title, key, right=True), cell)

    fields: list[Field[TaskSummary]] = [
        Field(Column("task", "task"), lambda t: word(t.task)),
        Field(Column("runtime", "runtime", quoted=True), lambda t: word(str(t.runtime.variant))),
        count("models", "models", lambda s: s.models),
        count("not yet", "waiting", lambda s: s.waiting or None),
        count("ran", "ran", lambda s: s.passed[RAN]),
        count("right", "right", lambda s: s.right),
        Field(
            Column("speed-up", "speedup", right=True),
            lambda t: Cell("" if t.runtime.speedup is None else f"{t.runtime.speedup:.2f}", t.runtime.speedup),
        ),
    ]
    return table_of(fields, task_summaries(corpus), title="Tasks")


def causes_table(corpus: Corpus) -> ReportTable:
    """Why models were kept from a stage, with an example."""
    fields: list[Field[Cause]] = [
        Field(Column("results", "results", right=True), lambda c: Cell(f"{c.count:,}", c.count)),
        Field(Column("not", "stage"), lambda c: word(c.stage)),
        Field(Column("on", "runtimes", quoted=True), lambda c: Cell(_on(c, len(corpus.variants)), c.runtimes)),
        Field(Column("why", "cause", quoted=True), lambda c: word(c.cause)),
        Field(Column(key="example"), lambda c: Cell(value=c.models[0])),
        Field(Column(key="example_detail"), lambda c: Cell(value=c.example)),
        Field(Column(key="models"), lambda c: Cell(value=list(c.models))),
    ]
    found = causes_of(corpus)
    table = table_of(fields, found, rest=lambda c: (3, _cause_words(c)), title="Why not")
    if len(found) <= _FEW_CAUSES + 1:
        return table
    others = found[_FEW_CAUSES:]
    results = sum(cause.count for cause in others)
    rest = Row((Cell(f"{results:,}"),), f"{len(others)} other causes: see the HTML report, or --json", 1)
    return msgspec.structs.replace(table, most=_FEW_CAUSES, rest=rest)


def _on(cause: Cause, variants: int) -> str:
    if len(cause.runtimes) <= 1:
        return next(iter(cause.runtimes), "")
    return f"all {variants}" if len(cause.runtimes) == variants else f"{len(cause.runtimes)} of {variants}"


def _cause_words(cause: Cause) -> str:
    """`no file 'config-6.json' (net6.py and 22 more)`: in the words of one model."""
    long = len(cause.example) > _MOST_EXAMPLES
    example = cause.example[: _MOST_EXAMPLES - 1] + "…" if long else cause.example
    if cause.stage == FASTER and not cause.cause.startswith("not compared"):
        example = f"{cause.cause}, such as {example}"
    others = len(cause.models) - 1
    return f"{example} ({cause.models[0]}{f' and {others:,} more' if others else ''})"


def matrix_table(corpus: Corpus) -> ReportTable:
    """A row for each model: its time on each runtime, or how far it got."""
    fields: list[Field[CorpusModel]] = [
        Field(Column("model", "model", quoted=True), lambda m: word(m.name)),
        Field(Column(key="corpus"), lambda m: Cell(value=m.corpus)),
        Field(Column(key="class"), lambda m: Cell(value=m.class_)),
        Field(Column(key="hash"), lambda m: Cell(value=m.identity)),
        Field(Column(key="build"), lambda m: Cell(value=m.build)),
        Field(
            Column("parameters", "parameters", right=True, drop_priority=2),
            lambda m: Cell("" if m.parameters is None else count_words(m.parameters), m.parameters),
        ),
        Field(Column(key="flops"), lambda m: Cell(value=m.flops)),
    ]
    for place, variant in enumerate(corpus.variants):
        fields += _columns(variant, drop_priority=0 if place < _FEW_RUNTIMES else min(place + 1, OPTIONAL - 1))
    labels = sorted({name for model in corpus.models for name in model.labels if name != "corpus"})
    fields += [_label(name) for name in labels]
    table = table_of(fields, corpus.models, title="Models and runtimes")
    if len(corpus.models) <= _FEW_MODELS + 1:
        return table
    rest = Row((Cell(f"{len(corpus.models) - _FEW_MODELS:,} others"),), "in the HTML report, the CSV and --json", 1)
    return msgspec.structs.replace(table, most=_FEW_MODELS, rest=rest)


def _label(name: str) -> Field[CorpusModel]:
    return Field(Column(key=f"label.{name}"), lambda m: Cell(value=m.labels.get(name)))


def _columns(variant: RuntimeVariant, drop_priority: int) -> list[Field[CorpusModel]]:
    """For people one column, for machines one for each figure."""

    def of(value: Callable[[CorpusEntry], object]) -> Callable[[CorpusModel], Cell]:
        return lambda m: Cell(value=value(m.entries[variant]) if variant in m.entries else None)

    def shown(model: CorpusModel) -> Cell:
        entry = model.entries.get(variant)
        return Cell() if entry is None else Cell(cell_words(entry), hint=entry_hint(entry), mark=cell_mark(entry))

    name = str(variant)
    columns: dict[str, Callable[[CorpusEntry], object]] = {
        "latency_ms": lambda e: None if e.latency_s is None else e.latency_s * 1e3,
        "vs_eager": lambda e: e.speedup,
        "vs_eager_doubt": lambda e: e.doubt,
        "error": lambda e: e.error,
        "memory_bytes": lambda e: e.memory_bytes,
        "status": lambda e: e.ending.status,
        "kept_from": lambda e: e.ending.kept_from,
        "cause": lambda e: e.ending.cause or None,
        "detail": lambda e: e.ending.detail or None,
        "notes": lambda e: "; ".join(e.notes) or None,
    }
    fields = [Field(Column(name, right=True, drop_priority=drop_priority), shown)]
    return fields + [Field(Column(key=f"{name}.{key}"), of(value)) for key, value in columns.items()]


def cell_words(entry: CorpusEntry) -> str:
    """`12.34 ms ×1.42`; `?` behind a doubtful speed-up, `~` behind a time whose outputs could not be judged."""
    if entry.ending.waiting:
        return "built" if entry.ending.status == ONLY_BUILT else "not yet"
    if entry.latency_s is None:
        if entry.ending.kept_from == CORRECT:
            return _WRONG
        return "skipped" if entry.ending.status == "skipped" else _SHORT.get(entry.ending.kept_from or "", "–")
    words = format_value(entry.latency_s, "s")
    if entry.ending.kept_from == CORRECT:
        return f"{words} ~"
    if entry.speedup is None or entry.variant.is_eager:
        return words
    return f"{words} ×{entry.speedup:.2f}" + (" ?" if entry.doubt else "")


def cell_mark(entry: CorpusEntry) -> str:
    return "failed" if entry.ending.status == "failed" else ""


def entry_hint(entry: CorpusEntry) -> str:
    """The hint on a cell: why it has no time, its error, reasons to doubt it."""
    parts = [entry.ending.detail if entry.ending.kept_from not in (None, FASTER) else ""]
    parts += [f"error {error_words(entry.error)}" if entry.error is not None else "", entry.doubt or "", *entry.notes]
    return "; ".join(filter(None, parts))
