"""The frame of every page: the bar with links, forms that ask, tables, drawings, and forms that write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

import msgspec
from markupsafe import Markup

from benchwright.core.errors import InvalidInput
from benchwright.report.document import Figure, ReportTable
from benchwright.report.html.pages import page_of, with_bar
from benchwright.server.change_book import ChangeBook
from benchwright.store.sql_store import SqlStore

_SCRIPTS = ("theme.js", "history.js")
_BAR = {
    "Overview": "/",
    "Benchmarks": "/benchmarks",
    "Runs": "/runs",
    "Compare": "/compare",
    "Changes": "/changes",
    "Machines": "/machines",
}
_MOST_PARAMETER = 500


class PageLink(Protocol):
    def __call__(self, path: str, /, item: str = "", **parameters: object) -> str:
        """The address of a page, of which `item` is the last part; empty if there is no such page, as in a site of files."""
        ...


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a page. `origin`: of addresses that are to be sent to others. `csrf`: empty for those who may only look."""

    link: PageLink
    parameters: Mapping[str, str] = {}
    path: str = "/"
    origin: str = ""
    who: str = ""
    csrf: str = ""
    forms: bool = True  # False: files, which answer no questions

    def word(self, name: str) -> str:
        return self.parameters.get(name, "")[:_MOST_PARAMETER].strip()

    def number(self, name: str, default: int = 0, most: int = 1_000_000) -> int:
        text = self.word(name)
        return min(int(text), most) if text.isascii() and text.isdigit() and len(text) < 9 else default

    def changed(self, **parameters: object) -> str:
        """This page with other parameters; None takes one away."""
        kept = {**self.parameters, **parameters}
        return self.link(self.path, "", **{key: value for key, value in kept.items() if value not in (None, "")})


class Archive(NamedTuple):
    """Where pages read. `runs`: the folder of runs made on this machine, whose logs may be read."""

    store: SqlStore
    book: ChangeBook
    runs: str
    name: str = "Benchwright"

    def of_project(self, name: str) -> Archive:
        if name == self.store.project:
            return self
        store, book = self.store.of_project(name), self.book.of_project(name)
        return self._replace(store=store, book=book, name=f"{self.name}: {name}")


class FormField(NamedTuple):
    name: str
    label: str
    value: str = ""
    options: Sequence[tuple[str, str]] = ()
    kind: str = "search"
    hint: str = ""


class WriteForm(NamedTuple):
    address: str
    fields: Sequence[FormField]
    button: str


class PageBlock(NamedTuple):
    """One part of a page, in the order in which its fields are shown."""

    heading: str = ""
    about: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    drawings: Sequence[Markup] = ()
    pairs: Sequence[tuple[str, str, bool]] = ()
    table: ReportTable | None = None
    empty: str = ""  # where there is no row
    commands: Sequence[tuple[str, str]] = ()
    form: WriteForm | None = None
    links: Sequence[tuple[str, str]] = ()
    place: str = ""


class SiteBar(NamedTuple):
    name: str
    links: Sequence[tuple[str, str, bool]]
    who: str
    sign_in: str
    notes: Sequence[str] = ()
    steps: Sequence[tuple[str, str]] = ()
    commands: Sequence[tuple[str, str]] = ()


def page(
    archive: Archive,
    asked: Asked,
    heading: str,
    blocks: Sequence[PageBlock],
    *,
    about: Sequence[str] = (),
    tiles: Sequence[tuple[str, str, str]] = (),
    fields: Sequence[FormField] = (),
    tabs: Sequence[tuple[str, str, bool]] = (),
    small_print: str = "",
) -> str:
    shown = [_without_dead_links(block) for block in blocks]
    project = asked.word("project")
    kept = [FormField("project", "", project, kind="hidden")] if project else []
    context = {
        "site": _bar(archive, asked),
        "heading": heading,
        "about": about,
        "tiles": tiles,
        "fields": [*fields, *kept] if fields else (),
        "tabs": [tab for tab in tabs if tab[1]],
        "blocks": shown,
        "csrf": asked.csrf,
        "forms": asked.forms,
        "small_print": small_print,
    }
    return page_of("central.html", _SCRIPTS, context)


def report_page(
    archive: Archive,
    asked: Asked,
    html: str,
    *,
    notes: Sequence[str] = (),
    steps: Sequence[tuple[str, str]] = (),
    commands: Sequence[tuple[str, str]] = (),
) -> str:
    """A report as part of the site."""
    bar = _bar(archive, asked)._replace(notes=notes, steps=[s for s in steps if s[1]], commands=commands)
    return with_bar(html, {"site": bar})


def _bar(archive: Archive, asked: Asked) -> SiteBar:
    made = ((words, asked.link(path), asked.path == path) for words, path in _BAR.items())
    return SiteBar(archive.name, [each for each in made if each[1]], asked.who, asked.link("/sign-in"))


def _without_dead_links(block: PageBlock) -> PageBlock:
    return block._replace(links=[link for link in block.links if link[1]])


def choices(values: Sequence[str], every: str) -> list[tuple[str, str]]:
    return [("", every), *((value, value) for value in values)]


def time_words(seconds: float) -> str:
    """In UTC: whoever looks may be anywhere."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return "unknown"


def moment_asked(text: str, name: str) -> float:
    """A date or time that somebody typed, UTC unless it names a zone, in seconds since 1970; InvalidInput if it is none."""
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        raise InvalidInput(f"'{text}' is not a date", where=name, remedy="write 2026-11-15") from None
