"""`/runs`, with filters that compose, and `/runs/ID`: the report of a run, how to make it again, and logs of what failed."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from benchwright.core.quantities import format_bytes
from benchwright.core.redacted import run_without_secrets
from benchwright.core.run import Run
from benchwright.core.status import Status
from benchwright.report.document import Cell, Column, Field, ReportTable, table_of, word
from benchwright.report.html.reporter import HtmlReporter
from benchwright.report.text.commands import command_line, words_of
from benchwright.report.text.numbers import counted, moment
from benchwright.results.after_run import report_of
from benchwright.results.compare import compare_commands
from benchwright.server.pages.frame import Archive, Asked, FormField, PageBlock, choices, page, report_page
from benchwright.server.queries import find_runs, host_names
from benchwright.store.base import RunFilter, RunRow

_AT_ONCE = 50
_MOST_COMMANDS = 3
_LOG_TAIL = 8  # lines beside the failure; below, there are more
NOWHERE = "/nonexistent/benchwright"  # the folder of a run that was made elsewhere: its path means nothing here


def runs(archive: Archive, asked: Asked) -> str:
    where, offset = filter_of(asked), asked.number("from")
    found = find_runs(archive.store, where, limit=_AT_ONCE, offset=offset)
    hosts = host_names(archive.store)
    fields = [
        FormField("text", "Text", asked.word("text"), hint="name, host, label, revision…"),
        FormField("benchmark", "Benchmark", asked.word("benchmark"), hint="a glob"),
        FormField("machine", "Machine", asked.word("machine"), choices(hosts, "every machine")),
        FormField("status", "Status", asked.word("status"), choices([s.value for s in Status], "every status")),
        FormField("label", "Label", asked.word("label"), hint="key=value"),
        FormField("since", "Since", asked.word("since"), hint="2026-11-15"),
        FormField("until", "Until", asked.word("until"), hint="2026-11-30"),
    ]
    links = []
    if offset:
        links.append(("newer", asked.changed(**{"from": max(0, offset - _AT_ONCE) or None})))
    if offset + len(found.rows) < found.total:
        links.append(("older", asked.changed(**{"from": offset + _AT_ONCE})))
    last = f", {offset + 1:,} to {offset + len(found.rows):,} shown" if found.rows and links else ""
    about = [f"{counted(found.total, 'run')}{last}, newest first."]
    block = PageBlock(table=run_table(found.rows, asked), empty="No run fits.", links=links)
    return page(archive, asked, "Runs", [block], about=about, fields=fields)


def filter_of(asked: Asked) -> RunFilter:
    """InvalidInput for a time or status that is none."""
    label, _, value = asked.word("label").partition("=")
    status = asked.word("status")
    return RunFilter(
        name=asked.word("name") or None,
        labels={label: value} if label else {},
        machine=asked.word("machine") or None,
        since=asked.word("since") or None,
        until=asked.word("until") or None,
        status=Status(status) if status in [each.value for each in Status] else None,
        benchmark=asked.word("benchmark") or None,
        text=asked.word("text") or None,
    )


def run_table(rows: Sequence[RunRow], asked: Asked) -> ReportTable:
    fields: list[Field[RunRow]] = [
        Field(
            Column("run", quoted=True),
            lambda r: Cell(r.id, r.id, address=asked.link("/runs/", item=r.uid), small=r.annotation or ""),
        ),
        Field(Column("status"), lambda r: word(r.status, mark=r.status)),
        Field(Column("started"), lambda r: word(moment(r.started))),
        Field(Column("machine"), lambda r: word(r.host, address=asked.link("/runs", machine=r.host))),
        Field(Column("benchmarks", right=True), lambda r: Cell(_count(r))),
        Field(Column("revision"), lambda r: word(r.revision)),
        Field(Column("labels"), lambda r: word(", ".join(f"{key}={value}" for key, value in r.labels.items()))),
        Field(Column("size", right=True), lambda r: word(format_bytes(r.size_bytes))),
    ]
    return table_of(fields, rows)


def _count(row: RunRow) -> str:
    return f"{row.benchmarks - row.failed:,} of {row.benchmarks:,} ok" if row.failed else f"{row.benchmarks:,}"


def run_page(archive: Archive, asked: Asked, uid: str) -> str:
    run = shown_run(archive, archive.store.load(uid))
    report = report_of(run, with_logs=True, comparisons=compare_commands(run))
    logs = archive.store.logs(uid)  # of what failed
    report = replace(
        report,
        run=replace(report.run, folder=_folder_words(run)),
        log_tails={job: lines[-_LOG_TAIL:] for job, lines in logs.items()} | dict(report.log_tails),
        logs={**logs, **report.logs},
    )
    steps = [
        ("compare with another run", asked.link("/compare", treatment=run.unique_id)),
        ("runs of this machine", asked.link("/runs", machine=run.machine.hostname)),
        ("runs of this name", asked.link("/runs", name=run.name)),
    ]
    commands = [("To reproduce it, in the same folder and environment:", text) for text in _commands(run)]
    return report_page(archive, asked, HtmlReporter().render(report), steps=steps, commands=commands)


def shown_run(archive: Archive, run: Run) -> Run:
    """The run without secrets, and without a folder of another machine."""
    return run_without_secrets(with_own_folder(archive, run))


def with_own_folder(archive: Archive, run: Run) -> Run:
    """Its folder is believed only if it is one of this machine: others could name any file here."""
    try:
        own = bool(run.folder) and Path(os.path.realpath(run.folder)).parent == Path(os.path.realpath(archive.runs))
    except (OSError, ValueError):  # what no path can hold, such as NUL
        own = False
    return run if own else replace(run, folder=NOWHERE)


def _folder_words(run: Run) -> str:
    return "on the machine that made it" if run.folder == NOWHERE else run.folder


def _commands(run: Run) -> list[str]:
    names = dict.fromkeys(command_line(words_of(result.benchmark)) for result in run.results)
    shown = [f"benchwright run -- {text}" for text in list(names)[:_MOST_COMMANDS]]
    if len(names) > _MOST_COMMANDS:
        shown = [f"benchwright run {shlex.quote(run.name)}"]
    return ["\n".join(shown)] if shown else []
