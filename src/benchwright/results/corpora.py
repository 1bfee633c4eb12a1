"""The corpus report: all results of models in one or more cache folders, as one document."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path

import msgspec

from benchwright.analysis.efficiency import run_efficiencies
from benchwright.core.aggregates import aggregate
from benchwright.core.errors import InvalidInput
from benchwright.core.run import Result, Run
from benchwright.core.whole_file import unwritable, write_whole
from benchwright.kinds.models.build_names import CORPUS, all_labels
from benchwright.kinds.models.corpus.document import CorpusReport, corpus_json, corpus_markdown, corpus_text
from benchwright.kinds.models.corpus.entries import corpus_of_reports
from benchwright.kinds.models.corpus.page import corpus_html
from benchwright.kinds.models.corpus.tables import matrix_table
from benchwright.kinds.models.report.facts import is_model, is_plain_script
from benchwright.kinds.models.report.fields import models_table
from benchwright.kinds.models.report.rows import model_rows
from benchwright.kinds.models.script_notes import matches_label
from benchwright.options.table import Options
from benchwright.report.base import Report
from benchwright.report.csv import csv_text
from benchwright.report.document import ReportTable
from benchwright.results.after_run import log_tails, summaries_of
from benchwright.results.kept_runs import Results
from benchwright.results.missing_module import with_missing_modules
from benchwright.results.run_index import UNREADABLE, list_runs, read_listed
from benchwright.runs.base_folder import BaseFolder

FORMATS = ("screen", "markdown", "json", "csv", "html")


def corpus_report(caches: Sequence[str], labels: Sequence[tuple[str, str]] = ()) -> CorpusReport:
    """Of every run in these cache folders that measured models; `labels`: only models that have them all.

    InvalidInput if a folder is none, or there is nothing to report.
    """
    troubles: list[str] = []
    runs: dict[str, Run] = {}
    for cache in dict.fromkeys(os.path.abspath(os.path.expanduser(cache)) for cache in caches):
        for run in _runs_in(Path(cache), troubles):
            chosen = tuple(r for r in run.results if _is_of_corpus(r) and _has(r, labels))
            if any(map(is_model, chosen)):
                runs[run.unique_id] = msgspec.structs.replace(run, results=chosen)
    if not runs:
        words = "".join(f" with {key}={value}" for key, value in labels)
        remedy = f"measure some: benchwright run … --cache-dir {caches[0]}"
        raise InvalidInput(f"no results of models{words}", where=", ".join(caches), remedy=remedy)
    reports = [_plain_report(run) for run in runs.values()]
    return CorpusReport(
        corpus=corpus_of_reports(reports),
        caches=tuple(caches),
        results=tuple(_long_table(report) for report in reports),
        troubles=tuple(troubles),
    )


def _plain_report(run: Run) -> Report:
    """A run's report as a corpus needs it, without sections that it would not show."""
    if tails := log_tails(run):
        run = with_missing_modules(run, tails)
    efficiency = run_efficiencies(run.results)
    return Report(run=run, summaries=summaries_of(run), aggregate=aggregate, efficiency=efficiency)


def rendered(report: CorpusReport, format_: str, *, width: int) -> str:
    """InvalidInput for a format that cannot hold a corpus."""
    if format_ == "html":
        return corpus_html(report)
    if format_ == "csv":
        return csv_text(report.results)
    if format_ not in FORMATS:
        raise InvalidInput(
            f"a corpus cannot be written as {format_}", where="--format", remedy=f"use {', '.join(FORMATS)}"
        )
    if format_ == "screen":
        return corpus_text(report, width)
    return corpus_markdown(report) if format_ == "markdown" else corpus_json(report)


def write_all(report: CorpusReport, folder: str, *, width: int) -> list[str]:
    """Every format into `folder`, named after the day, such as `2026-11-16.csv`. Returns the paths."""
    day = date.today().isoformat()
    texts = {
        f"{day}.csv": rendered(report, "csv", width=width),
        f"{day}-matrix.csv": csv_text([matrix_table(report.corpus)]),
        f"{day}.html": rendered(report, "html", width=width),
        f"{day}.md": rendered(report, "markdown", width=width),
        f"{day}.json": rendered(report, "json", width=width),
    }
    return _written(texts, Path(folder).expanduser())


def write_table(report: CorpusReport, folder: str) -> list[str]:
    """Of what `write_all` writes only the table."""
    texts = {f"{date.today().isoformat()}.csv": csv_text(report.results)}
    return _written(texts, Path(folder))


def is_corpus(run: Run) -> bool:
    """Whether it measured the models of so many scripts that they had to be asked for, and nothing else."""
    scripts = {r.benchmark.workload.script or r.benchmark.source for r in run.results}
    return len(scripts) > (Options().most_scripts or 0) and all(map(_is_of_corpus, run.results))


def _written(texts: Mapping[str, str], place: Path) -> list[str]:
    written = []
    for name, text in texts.items():
        try:
            place.mkdir(parents=True, exist_ok=True)
            write_whole(place / name, text.encode())
        except OSError as error:
            raise unwritable(str(place / name), error) from error
        written.append(str(place / name))
    return written


def is_cache(path: str) -> bool:
    """Whether it is a folder that runs were kept in, not one of a run."""
    return os.path.isdir(os.path.join(os.path.expanduser(path), "runs"))


def _runs_in(cache: Path, troubles: list[str]) -> Iterator[Run]:
    """Every run that can be read, finished or not; `troubles` gets the names of the others."""
    if not cache.is_dir():
        raise InvalidInput("no such folder", where=str(cache), remedy="check the name")
    unreadable: list[str] = []
    with Results(BaseFolder(cache), str(cache / "store.db")) as results:
        listed = list_runs(results)
        rows = [row for row in listed.rows if row.status != UNREADABLE]
        unreadable += [row.id for row in listed.rows if row.status == UNREADABLE]
        yield from read_listed(results, rows, unreadable)
    if unreadable:
        troubles.append(f"could not be read and are left out: {', '.join(unreadable)} ('benchwright runs' says why)")


def _is_of_corpus(result: Result) -> bool:
    return is_model(result) or is_plain_script(result)


def _has(result: Result, labels: Sequence[tuple[str, str]]) -> bool:
    work = result.benchmark.workload
    known: Mapping[str, str] = result.benchmark.labels
    if is_model(result):
        known = all_labels(work, known)  # type: ignore[arg-type]
    elif CORPUS not in known:
        known = {**known, CORPUS: os.path.basename(os.path.dirname(os.path.abspath(result.benchmark.source)))}
    return all(matches_label(dict(known), key, value) for key, value in labels)


def _long_table(report: Report) -> ReportTable:
    scripts = {number: r for number, r in enumerate(report.run.results) if not is_model(r)}
    return models_table(model_rows(report), scripts, report.run)
