"""A corpus as a document: sections for every reporter, and the whole report as text, Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from benchwright.core.note import Note
from benchwright.kinds.models.corpus.entries import Corpus
from benchwright.kinds.models.corpus.summaries import common_notes
from benchwright.kinds.models.corpus.tables import causes_table, funnel_table, matrix_table, runtimes_table, tasks_table
from benchwright.report.document import Callout, ReportSection, ReportTable
from benchwright.report.text.layout import left_out_words, table_lines, wrapped
from benchwright.report.text.markdown import bullets, code, markdown_table, plain
from benchwright.report.text.numbers import counted, json_body
from benchwright.report.text.one_line import titled

FORMAT = "benchwright-corpus"
VERSION = 1
_MOST_NOTES = 6


class CorpusReport(msgspec.Struct, frozen=True, kw_only=True):
    """A corpus with all that is said of it. `results`: one row for each result of each run, as in the CSV."""

    corpus: Corpus
    caches: tuple[str, ...]
    results: tuple[ReportTable, ...]
    troubles: tuple[str, ...] = ()  # what could not be read

    @property
    def tables(self) -> tuple[ReportTable, ...]:
        """First things first."""
        return corpus_tables(self.corpus)


def corpus_tables(corpus: Corpus) -> tuple[ReportTable, ...]:
    made = (
        matrix_table(corpus),
        runtimes_table(corpus),
        funnel_table(corpus),
        causes_table(corpus),
        tasks_table(corpus),
    )
    return tuple(table for table in made if table.rows)


def corpus_sections(corpus: Corpus) -> tuple[ReportSection, ...]:
    """In place of a section for each model, where there are too many."""
    first, *others = corpus_tables(corpus)
    return (
        ReportSection(
            heading=("Corpus", *corpus_words(corpus)), tables=(first,), callouts=tuple(map(Callout, notes_of(corpus)))
        ),
        *(ReportSection(heading=(table.title,), tables=(table,)) for table in others),
    )


def corpus_words(corpus: Corpus) -> list[str]:
    """`1,000 models of 998 scripts`, `4 runtimes`, `12 scripts without a model`."""
    scripts = all(model.source.endswith((".py", ".ipynb")) for model in corpus.models)
    words = [counted(len(corpus.models), "model") + (f" of {counted(corpus.sources, 'script')}" if scripts else "")]
    words += [counted(len(corpus.variants), "runtime")] if corpus.variants else []
    words += [f"{counted(len(corpus.withheld), 'model')} found and not measured"] if corpus.withheld else []
    words += [f"{counted(len(corpus.scripts), 'script')} without a model"] if corpus.scripts else []
    return words


def notes_of(corpus: Corpus) -> list[Note]:
    """Reasons to doubt numbers, with how many results each concerns."""
    found = common_notes(corpus)
    notes = [Note(text=text, evidence=counted(count, "result")) for text, count in found[:_MOST_NOTES]]
    if len(found) > _MOST_NOTES:
        notes.append(Note(text=f"{len(found) - _MOST_NOTES} other remarks: in the CSV, JSON and HTML"))
    if len(corpus.machines) > 1:
        notes.append(Note(text=f"measured on several machines: {', '.join(corpus.machines)}"))
    return notes


def corpus_text(report: CorpusReport, width: int) -> str:
    lines = wrapped(", ".join(corpus_words(report.corpus)), width, " ")
    lines += wrapped(f"{counted(len(report.corpus.runs), 'run')} in {', '.join(report.caches)}", width, " ")
    for table in report.tables:
        lines += ["", f" {table.title}", *(f"  {line}" for line in table_lines(table, width - 2, whole=True))]
        lines += [line for text in table.notes for line in wrapped(text, width, "   ")]
    lines += ["", *left_out_words(report.tables, width - 2, "--json")]
    for note in notes_of(report.corpus):
        lines += wrapped(f"⚠ {note}", width, " ")
    lines += [line for text in report.troubles for line in wrapped(f"⚠ {text}", width, " ")]
    return "\n".join(lines).rstrip() + "\n"


def corpus_markdown(report: CorpusReport) -> str:
    blocks = [f"### Corpus: {plain(', '.join(corpus_words(report.corpus)))}"]
    blocks.append(f"{counted(len(report.corpus.runs), 'run')} in {', '.join(map(code, report.caches))}.")
    for table in report.tables:
        blocks += [f"#### {plain(titled(table.title))}", markdown_table(table)]
    texts = [*(str(note) for note in notes_of(report.corpus)), *report.troubles]
    return "\n\n".join([*blocks, *([bullets(texts)] if texts else [])]) + "\n"


def corpus_json(report: CorpusReport) -> str:
    corpus = report.corpus
    body: dict[str, object] = {
        "format": FORMAT,
        "version": VERSION,
        "caches": list(report.caches),
        "runs": list(corpus.runs),
        "machines": list(corpus.machines),
        "runtimes": _records(runtimes_table(corpus)),
        "funnel": _records(funnel_table(corpus)),
        "tasks": _records(tasks_table(corpus)),
        "causes": _records(causes_table(corpus)),
        "models": _records(matrix_table(corpus)),
        "results": [record for table in report.results for record in _records(table)],
        "notes": [{"text": note.text, "results": note.evidence} for note in notes_of(corpus)],
        "troubles": list(report.troubles),
    }
    return json.dumps(body, indent=1) + "\n"


def _records(table: ReportTable) -> Sequence[dict[str, object]]:
    return [json_body(record) for record in table.records()]
