"""The text of a task file as sections and entries, each with its line.

`configparser` is not used: it keeps no line of a key, so an error deep in a value could not say where; it stops at `%`
unless set otherwise; and it takes `[name] anything` for a section. What it accepts and files in the wild use is read the
same here: `=` or `:`, keys in any case, comments on separate lines, values that go on in deeper indented lines, blank
and comment lines between those, `[DEFAULT]`, a whole file indented by the same amount. docs/decisions/ has the reasons.
"""

from __future__ import annotations

import re

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.kinds.text_file import TextPlace, decode, read_bytes

DEFAULTS = "DEFAULT"
_SECTION = re.compile(r"\[([^\]]*)\]\s*([#;].*)?")
_ENTRY = re.compile(r"([^=:\s][^=:]*?)\s*[=:]\s*(.*)", re.DOTALL)


class Part(msgspec.Struct, frozen=True):
    """A value's text in one line of the file, and where it begins."""

    text: str
    place: TextPlace


class TaskEntry(msgspec.Struct, frozen=True):
    key: str
    place: TextPlace
    parts: tuple[Part, ...]

    @property
    def value(self) -> str:
        return "\n".join(part.text for part in self.parts)

    @property
    def value_place(self) -> TextPlace:
        return self.parts[0].place

    def place_of(self, offset: int) -> TextPlace:
        """Where the character `offset` of the value stands in the file."""
        for part in self.parts:
            if offset <= len(part.text):
                return TextPlace(part.place.line, part.place.column + offset)
            offset -= len(part.text) + 1
        return self.parts[-1].place


class Section(msgspec.Struct, frozen=True):
    name: str
    line: int
    entries: dict[str, TaskEntry]


class TaskFile(msgspec.Struct, frozen=True):
    """`path` is as the user wrote it. `sections` excludes [DEFAULT], whose entries are in every section that lacks them."""

    path: str
    lines: tuple[str, ...]
    sections: dict[str, Section]

    def error(self, what: str, place: TextPlace | int, remedy: str | None = None) -> InvalidInput:
        """An InvalidInput that points at `place` (a whole line if only that is known)."""
        return _error(self.path, self.lines, what, place, remedy)


def read_task_file(path: str) -> TaskFile:
    """The sections of the file at `path`; InvalidInput with the line where it cannot be understood."""
    return parse_task_file(_decode(path, read_bytes(path, kind="task file")), path)


def parse_task_file(text: str, path: str) -> TaskFile:
    """As `read_task_file`, from text."""
    lines = tuple(text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    reader = _Reader(path, lines)
    for number, line in enumerate(lines, start=1):
        reader.take(number, line)
    sections = reader.finish()
    defaults = sections.pop(DEFAULTS, None)
    if not sections:
        raise InvalidInput(
            "the file has no tasks" if text.strip() else "the file is empty",
            where=path,
            remedy="a task begins with its name in brackets, such as [resnet50], and has a command_to_execute",
        )
    if defaults is not None:
        sections = {n: Section(n, s.line, {**defaults.entries, **s.entries}) for n, s in sections.items()}
    return TaskFile(path, lines, sections)


def _decode(path: str, content: bytes) -> str:
    text = decode(path, content)
    nul = text.find("\0")
    if nul >= 0:
        line = text.count("\n", 0, nul) + 1
        raise InvalidInput(
            "a NUL byte", where=path, line=line, remedy="remove it; this may be a binary file, or saved as UTF-16"
        )
    return text


class _Reader:
    """Takes the file line by line. A line belongs to the entry above it if it is indented deeper than that entry's key."""

    def __init__(self, path: str, lines: tuple[str, ...]) -> None:
        self.path = path
        self.lines = lines
        self.sections: dict[str, Section] = {}
        self.section: Section | None = None
        self.key: tuple[str, TextPlace] | None = None
        self.parts: list[Part] = []

    def take(self, number: int, line: str) -> None:
        content = line.strip()
        if not content or content[0] in "#;":
            return
        place = TextPlace(number, len(line) - len(line.lstrip()) + 1)
        if self.key is not None and place.column > self.key[1].column:
            self.parts.append(Part(content, place))
        elif content.startswith("["):
            self._begin_section(content, place)
        else:
            self._begin_entry(content, place)

    def finish(self) -> dict[str, Section]:
        self._end_entry()
        return self.sections

    def _begin_section(self, content: str, place: TextPlace) -> None:
        self._end_entry()
        match = _SECTION.fullmatch(content)
        name = match[1].strip() if match else ""
        if not name:
            raise self._error(
                "this is not a section", place, "write its name in brackets and nothing after it, such as [resnet50]"
            )
        if name in self.sections:
            first = self.sections[name].line
            raise self._error(
                f"section [{name}] appears twice, first in line {first}",
                place,
                "rename or remove one of the two",
            )
        self.section = self.sections[name] = Section(name, place.line, {})

    def _begin_entry(self, content: str, place: TextPlace) -> None:
        self._end_entry()
        match = _ENTRY.fullmatch(content)
        if match is None:
            raise self._error(
                "this is neither [section] nor key = value", place, "indent a line that goes on with the value above it"
            )
        if self.section is None:
            raise self._error(
                f"'{match[1]}' comes before any section",
                place,
                "put the name of its task above it, such as [resnet50]",
            )
        key = match[1].lower()
        if key in self.section.entries:
            first = self.section.entries[key].place.line
            raise self._error(
                f"'{key}' appears twice in [{self.section.name}], first in line {first}",
                place,
                "remove one of the two",
            )
        self.key = (key, place)
        self.parts = [Part(match[2], TextPlace(place.line, place.column + match.start(2)))]

    def _end_entry(self) -> None:
        if self.key is not None and self.section is not None:
            key, place = self.key
            # `patterns =` with its list below: the value begins where its first text stands.
            parts = [part for part in self.parts if part.text] or self.parts[:1]
            self.section.entries[key] = TaskEntry(key, place, tuple(parts))
        self.key = None

    def _error(self, what: str, place: TextPlace, remedy: str) -> InvalidInput:
        return _error(self.path, self.lines, what, place, remedy)


def _error(path: str, lines: tuple[str, ...], what: str, place: TextPlace | int, remedy: str | None) -> InvalidInput:
    line = place if isinstance(place, int) else place.line
    return InvalidInput(
        what,
        where=path,
        line=line,
        column=None if isinstance(place, int) else place.column,
        remedy=remedy,
        text=lines[line - 1] if 0 < line <= len(lines) else None,
    )
