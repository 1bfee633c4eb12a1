"""`/`: what changed since a date or a commit."""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchwright.core.errors import InvalidInput
from benchwright.core.quantities import format_duration
from benchwright.report.document import Cell, Column, Field, ReportTable, table_of, word
from benchwright.report.text.numbers import counted
from benchwright.server.pages.change_pages import change_table
from benchwright.server.pages.frame import Archive, Asked, FormField, PageBlock, moment_asked, page, time_words
from benchwright.server.queries import Failing, MachineSeen, commit_start_s, failing_since, machines_seen
from benchwright.server.server_file import now_s

_DAYS = 14
_SILENT = 3.0  # times the usual gap
_LEAST_SILENCE_S = 3600.0
_COMMIT = re.compile(r"[0-9a-f]{4,40}")


def overview(archive: Archive, asked: Asked) -> str:
    since_s, words = _since(archive, asked)
    machines = machines_seen(archive.store)
    changes = archive.book.since(since_s)
    failing = failing_since(archive.store, since_s)
    silent = [each for each in machines if _is_silent(each)]
    regressed = [change for change in changes if change.verdict == "regressed"]
    improved = [change for change in changes if change.verdict == "improved"]
    blocks = [
        PageBlock("Regressed", table=change_table(regressed, asked), empty="Nothing beyond the noise."),
        PageBlock("Newly failing", table=_failing_table(failing, asked), empty="Nothing."),
        PageBlock("Improved", table=change_table(improved, asked), empty="Nothing beyond the noise."),
        PageBlock("Unusually silent machines", table=_silent_table(silent, asked), empty="None."),
    ]
    runs = sum(each.runs for each in machines)
    tiles = [
        ("Regressed", f"{len(regressed)}", ""),
        ("Newly failing", f"{len(failing)}", ""),
        ("Improved", f"{len(improved)}", ""),
        ("Runs", f"{runs:,}", f"on {counted(len(machines), 'machine')}"),
    ]
    field = FormField("since", "Since a date or a commit", asked.word("since"), hint="2026-11-15 or 1a2b3c4d")
    return page(
        archive,
        asked,
        f"Since {words}",
        blocks,
        tiles=tiles,
        fields=[field],
        small_print="Changes are found within one machine and one setting, in 12 runs or more; verdicts are never drawn across them.",
    )


def _since(archive: Archive, asked: Asked) -> tuple[float, str]:
    text = asked.word("since")
    if not text:
        start = now_s() - _DAYS * 86_400
        return start, time_words(start).partition(" ")[0]
    if _COMMIT.fullmatch(text) and (found := commit_start_s(archive.store, text)) is not None:
        return found, f"commit {text}"
    try:
        return moment_asked(text, "since"), text
    except InvalidInput:
        raise InvalidInput(
            f"'{text}' is neither a date nor a commit of a stored run", where="since", remedy="write 2026-11-15"
        ) from None


def _is_silent(machine: MachineSeen) -> bool:
    if machine.usual_gap_s is None:
        return False
    return now_s() - machine.last_s > max(_SILENT * machine.usual_gap_s, _LEAST_SILENCE_S)


def _failing_table(found: Sequence[Failing], asked: Asked) -> ReportTable:
    fields: list[Field[Failing]] = [
        Field(Column("benchmark", quoted=True), lambda f: word(f.benchmark, address=_runs_of(f, asked))),
        Field(Column("host"), lambda f: word(f.host)),
        Field(Column("why"), lambda f: word(f.reason.replace("_", " "))),
        Field(Column("failures", right=True), lambda f: Cell(f"{f.failures:,}")),
        Field(Column("last failed"), lambda f: word(time_words(f.last_s))),
        Field(Column("last succeeded"), lambda f: word("never" if f.last_ok_s is None else time_words(f.last_ok_s))),
    ]
    return table_of(fields, found)


def _runs_of(failing: Failing, asked: Asked) -> str:
    return asked.link("/runs", benchmark=_literal(failing.benchmark), machine=failing.host, status="failed")


def _literal(text: str) -> str:
    """As a glob that means only this."""
    return re.sub(r"([*?\[])", r"[\1]", text)


def _silent_table(found: Sequence[MachineSeen], asked: Asked) -> ReportTable:
    fields: list[Field[MachineSeen]] = [
        Field(Column("machine", quoted=True), lambda m: word(m.host, address=asked.link("/runs", machine=m.host))),
        Field(Column("last run"), lambda m: word(time_words(m.last_s))),
        Field(Column("silent for", right=True), lambda m: word(_span(now_s() - m.last_s))),
        Field(
            Column("usually at most", right=True),
            lambda m: word("" if m.usual_gap_s is None else _span(m.usual_gap_s)),
        ),
    ]
    return table_of(fields, found)


def _span(seconds: float) -> str:
    return f"{seconds / 86_400:.0f} days" if seconds > 2 * 86_400 else format_duration(seconds)
