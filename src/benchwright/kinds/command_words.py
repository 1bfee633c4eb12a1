"""A command line as a user types it: its words, and whether it can do without a shell."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from benchwright.core.benchmark import Command
from benchwright.core.errors import InvalidInput

Fail = Callable[[str, int, str], InvalidInput]  # what, position in the line, remedy

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_EXPANSION = re.compile(r"\$(?:[A-Za-z_0-9{(@*#?!$-])")


class Word(msgspec.Struct, frozen=True):
    """A word, or an operator of the shell (`|`, `&&`, a line's end…), and where it stands in the line."""

    text: str  # as a program gets it, quotes removed
    start: int
    end: int
    operator: bool = False


class NeedsShell(msgspec.Struct, frozen=True):
    """The part of a line that only a shell understands, and where it is."""

    what: str
    position: int


class Line(msgspec.Struct, frozen=True):
    """A command line, read. `unclosed` is where a quote opens that never closes (or a backslash ends the line)."""

    words: tuple[Word, ...]
    needs_shell: NeedsShell | None = None
    unclosed: int | None = None


def read_line(line: str) -> Line:
    """The words of `line` as a POSIX shell splits them, each with its place, and the first thing that needs a shell.

    `shlex.split` gives the same words (but for `"\\$"`), without their places, and takes `|` or `&&` for words too.
    """
    scanner = _Scanner(line)
    scanner.scan()
    return Line(tuple(scanner.words), scanner.needs_shell, scanner.unclosed)


class _Scanner:
    """Walks over the line once. Quotes and backslashes mean what they mean to a POSIX shell."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.position = 0
        self.words: list[Word] = []
        self.needs_shell: NeedsShell | None = None
        self.unclosed: int | None = None

    def scan(self) -> None:
        while self.position < len(self.line) and self.unclosed is None:
            if self.line.startswith("\\\n", self.position):
                self.position += 2  # the command goes on in the next line
            elif self.line[self.position] in " \t\r":
                self.position += 1
            elif self.line[self.position] in "|&;<>()\n":
                self._operator()
            else:
                self._word()

    def _operator(self) -> None:
        start = self.position
        if self.line[start] == "\n":
            self._note("a second line", start)
            self.position += 1
        else:
            while self.position < len(self.line) and self.line[self.position] in "|&;<>()":
                self.position += 1
            self._note(f"'{self.line[start : self.position]}'", start)
        self.words.append(Word(self.line[start : self.position], start, self.position, operator=True))

    def _word(self) -> None:
        start, text = self.position, []
        if self.line[start] == "~":
            self._note("'~' (your home folder)", start)
        elif self.line[start] == "#":
            self._note("'#' (a comment)", start)
        while self.position < len(self.line) and self.unclosed is None:
            character = self.line[self.position]
            if character in " \t\r\n|&;<>()" or self.line.startswith("\\\n", self.position):
                break
            if character == "'":
                text.append(self._single_quoted())
            elif character == '"':
                text.append(self._double_quoted())
            elif character == "\\":
                text.append(self._escaped())
            else:
                self._note_expansion()
                text.append(character)
                self.position += 1
        if self.unclosed is not None:
            return
        if _ASSIGNMENT.match(self.line, start) and all(word.operator for word in self.words[-1:]):
            self._note("a variable set before the command", start)
        self.words.append(Word("".join(text), start, self.position))

    def _single_quoted(self) -> str:
        start = self.position
        end = self.line.find("'", start + 1)
        if end < 0:
            self.unclosed = start
            return ""
        self.position = end + 1
        return self.line[start + 1 : end]

    def _double_quoted(self) -> str:
        start = self.position
        text: list[str] = []
        self.position += 1
        while self.position < len(self.line):
            character = self.line[self.position]
            if character == '"':
                self.position += 1
                return "".join(text)
            if character == "\\" and self.line[self.position + 1 : self.position + 2] in ('"', "\\", "$", "`", "\n"):
                following = self.line[self.position + 1]
                text.append("" if following == "\n" else following)
                self.position += 2
                continue
            if character in "$`":
                self._note_variable()
            text.append(character)
            self.position += 1
        self.unclosed = start
        return ""

    def _escaped(self) -> str:
        if self.position + 1 == len(self.line):
            self.unclosed = self.position
            return ""
        self.position += 2
        return self.line[self.position - 1]

    def _note_expansion(self) -> None:
        character = self.line[self.position]
        if character in "$`":
            self._note_variable()
        elif character in "*?":
            self._note(f"'{character}' (file names)", self.position)
        elif character == "[" and re.match(r"\[[^\s'\"\]]+\]", self.line[self.position :]):
            self._note("'[…]' (file names)", self.position)

    def _note_variable(self) -> None:
        if self.line[self.position] == "`" or _EXPANSION.match(self.line, self.position):
            self._note("'`'" if self.line[self.position] == "`" else "'$' (a variable)", self.position)

    def _note(self, what: str, position: int) -> None:
        if self.needs_shell is None:
            self.needs_shell = NeedsShell(what, position)


def command_from_line(line: str, *, cwd: str, shell: bool, fail: Fail) -> Command:
    """`line` as argv, or as the one line for a shell; raises what `fail` makes of a line that cannot be run like that."""
    check_line(line, shell=shell, fail=fail)
    if shell:
        return Command(argv=(line.strip(),), cwd=cwd, shell=shell)
    return Command(argv=tuple(word.text for word in read_line(line).words), cwd=cwd)


def check_line(line: str, *, shell: bool, fail: Fail) -> None:
    """Raises what `fail` makes of it if `line` is empty, has an open quote, or needs a shell that was not asked for."""
    read = read_line(line)
    if "\0" in line:
        raise fail("a NUL byte in the command", line.index("\0"), "remove it")
    if read.unclosed is not None:
        opened = line[read.unclosed]
        what = "a backslash ends the command" if opened == "\\" else f"a quote ({opened}) opens here and never closes"
        raise fail(what, read.unclosed, "close it, or put a backslash before it" if opened != "\\" else "remove it")
    if not any(word.text for word in read.words[:1]):
        raise fail("the command is empty", 0, "name the program to run")
    if read.needs_shell is not None and not shell:
        raise fail(
            f"{read.needs_shell.what} needs a shell",
            read.needs_shell.position,
            "run it with --shell, or put it in quotes if it is meant literally"
            if line[read.needs_shell.position] != "\n"
            else "end the line above with a backslash if the command goes on here, or run it with --shell",
        )
