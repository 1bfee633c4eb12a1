"""The HTML page of a corpus: tables, a heat map that can be sorted, searched and filtered, and a scatter plot."""

from __future__ import annotations

import math
from typing import NamedTuple

from benchwright.core.note import Note
from benchwright.kinds.models.corpus.causes import CORRECT
from benchwright.kinds.models.corpus.document import CorpusReport, corpus_words, notes_of
from benchwright.kinds.models.corpus.entries import Corpus, CorpusEntry
from benchwright.kinds.models.corpus.tables import (
    causes_table,
    cell_words,
    entry_hint,
    funnel_table,
    runtimes_table,
    tasks_table,
)
from benchwright.report.document import ReportTable
from benchwright.report.html.pages import data_block, page_of

_SCRIPTS = ("chart_frame.js", "theme.js", "corpus_scatter.js", "corpus.js")
_DIGITS = 5
_MOST_LABELS = 400  # values that can be filtered by


class CorpusView(NamedTuple):
    title: str
    words: list[str]
    caches: tuple[str, ...]
    runs: tuple[str, ...]
    runtimes: ReportTable
    funnel: ReportTable
    tasks: ReportTable
    causes: ReportTable
    labels: list[tuple[str, list[str]]]
    notes: list[Note]
    troubles: tuple[str, ...]
    data: str


def corpus_html(report: CorpusReport) -> str:
    """One file that needs nothing else. A thousand models are rows of one table, not cards."""
    corpus = report.corpus
    words, counted = corpus_words(corpus), 2 if corpus.variants else 1
    view = CorpusView(
        title=" on ".join(words[:counted]),
        words=[*words[counted:], *([f"measured on {', '.join(corpus.machines)}"] if corpus.machines else [])],
        caches=report.caches,
        runs=corpus.runs,
        runtimes=runtimes_table(corpus),
        funnel=funnel_table(corpus),
        tasks=tasks_table(corpus),
        causes=causes_table(corpus),
        labels=_labels(corpus),
        notes=notes_of(corpus),
        troubles=report.troubles,
        data=data_block(_data(corpus)),
    )
    return page_of("corpus.html", _SCRIPTS, {"view": view})


def _labels(corpus: Corpus) -> list[tuple[str, list[str]]]:
    """The labels that tell models apart, with their values; long lists, such as names, are left to the search."""
    found: dict[str, set[str]] = {}
    for model in corpus.models:
        for name, values in model.labels.items():
            found.setdefault(name, set()).update(filter(None, values.split(",")))
    few = {name: sorted(values) for name, values in found.items() if 1 < len(values) <= _MOST_LABELS}
    return sorted((name, values) for name, values in few.items() if len(values) < len(corpus.models) or len(values) < 9)


def _data(corpus: Corpus) -> dict[str, object]:
    """Texts that many cells share are written once, and cells name them by number."""
    texts: dict[str, int] = {"": 0}

    def number(text: str) -> int:
        return texts.setdefault(text, len(texts))

    def cell(entry: CorpusEntry | None) -> list[object] | int:
        if entry is None:
            return 0
        state = 2 if entry.ending.status == "failed" else 1 if entry.latency_s is None else 0
        state = 3 if state == 0 and entry.ending.kept_from == CORRECT else state
        figures = (entry.latency_s, entry.speedup, entry.error, entry.memory_bytes)
        words = "" if state in (0, 3) else cell_words(entry)
        return [state, *map(_short, figures), number(words), number(entry_hint(entry)), int(entry.doubt is not None)]

    models = [
        [
            model.name,
            model.parameters,
            _short(model.flops),
            number(model.class_),
            {name: number(value) for name, value in model.labels.items()},
            [cell(model.entries.get(variant)) for variant in corpus.variants],
        ]
        for model in corpus.models
    ]
    variants = [[str(variant), int(variant.is_eager)] for variant in corpus.variants]
    return {"variants": variants, "models": models, "texts": list(texts)}


def _short(value: float | None) -> float | None:
    """In five digits: the CSV has them all."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{_DIGITS}g}")
