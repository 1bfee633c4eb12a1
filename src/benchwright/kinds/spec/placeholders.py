"""Fills `{name}` in the lines of a specification. Braces around anything unknown stay: they may be awk's."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from functools import lru_cache

from benchwright.core.errors import InvalidInput
from benchwright.kinds.command_words import Line, read_line
from benchwright.kinds.spec.read.keys import PLACEHOLDER

DEEPEST = 32
LONGEST = 1 << 17  # characters of a filled line: a longer word cannot be executed
_FIRST_MARK, _LAST_MARK = 0xF0000, 0xFFFFD  # private characters that stand for values while a line is split
_MARKS = re.compile(f"[{chr(_FIRST_MARK)}-{chr(_LAST_MARK)}]")
_SPECIAL_IN_QUOTES = re.compile(r'([\\"$`])')


class Filler:
    """Fills the placeholders of one launch.

    `texts`, each mapping before the next: they may hold further placeholders. `paths`, asked after the first of them that
    knows the name does not: a path is taken as it is, and stays one word whatever it holds.
    """

    def __init__(
        self, values: Mapping[str, str], paths: Mapping[str, str], more: Sequence[Mapping[str, str]] = ()
    ) -> None:
        self._values = values
        self._paths = paths
        self._more = more
        self.used: set[str] = set()  # names that were filled

    def text(self, line: str) -> str:
        """`line` with everything known filled in."""
        return self._unmarked(*self._marked(line))

    def command(self, line: str) -> str | tuple[str, ...]:
        """The words of a command line; as one text if only a shell understands it. InvalidInput if it is neither."""
        marked, values = self._marked(line)
        read = _read(marked)
        if read.unclosed is not None:
            raise InvalidInput("a quote opens and never closes", text=self._unmarked(marked, values), remedy="close it")
        if read.needs_shell is None:
            words = tuple(self._unmarked(word.text, values) for word in read.words)
            if not words or not words[0]:
                raise InvalidInput("the command is empty", remedy="name the program to run")
            return words
        return _quoted(marked, values).strip()

    def unknown(self, line: str) -> list[str]:
        """Names in braces that mean nothing, once all others are filled."""
        return list(dict.fromkeys(name for name in PLACEHOLDER.findall(self._marked(line)[0])))

    def _marked(self, line: str) -> tuple[str, list[str]]:
        """`line` with texts filled, and each path as one private character."""
        if _MARKS.search(line):
            raise InvalidInput("private characters cannot be used here", remedy="remove U+F0000 and above", text=line)
        values: list[str] = []
        return self._filled(line, (), values), values

    def _filled(self, line: str, above: tuple[str, ...], values: list[str]) -> str:
        if len(above) > DEEPEST:
            raise InvalidInput(
                f"placeholders are nested too deep: {_chain(above[:4])} …", remedy="take some levels out"
            )

        def value(found: re.Match[str]) -> str:
            name = found[1]
            text = self._text(name)
            if text is None:
                path = self._path(name)
                if path is None:
                    return found[0]
                self.used.add(name)
                values.append(path)
                if len(values) > _LAST_MARK - _FIRST_MARK:
                    raise _too_long(name)
                return chr(_FIRST_MARK + len(values) - 1)
            if name in above:
                chain = _chain((*above[above.index(name) :], name))
                raise InvalidInput(f"placeholders refer to each other: {chain}", remedy="give one of them a value")
            self.used.add(name)
            return self._filled(text, (*above, name), values)

        filled = PLACEHOLDER.sub(value, line)
        if len(filled) > LONGEST:
            raise _too_long(above[-1] if above else line[:40])
        return filled

    def _text(self, name: str) -> str | None:
        if name in self._values:
            return self._values[name]
        if name in self._paths:
            return None
        return next((texts[name] for texts in self._more if name in texts), None)

    def _path(self, name: str) -> str | None:
        return self._paths.get(name)

    def _unmarked(self, text: str, values: Sequence[str]) -> str:
        return _MARKS.sub(lambda mark: values[ord(mark[0]) - _FIRST_MARK], text) if values else text


@lru_cache(maxsize=256)
def _read(marked: str) -> Line:
    """Launches of a test differ only in what the marks stand for."""
    return read_line(marked)


def _too_long(name: str) -> InvalidInput:
    return InvalidInput(f"what {{{name}}} stands for grows without end", remedy="use fewer placeholders in each other")


def _chain(names: Sequence[str]) -> str:
    return " → ".join(f"{{{name}}}" for name in names)


def _quoted(line: str, values: Sequence[str]) -> str:
    """For a shell: each value quoted as its place in the line needs it, so that it stays what it is."""
    made: list[str] = []
    quote, at = "", 0
    while at < len(line):
        character = line[at]
        if _MARKS.match(character):
            value = values[ord(character) - _FIRST_MARK]
            if quote == "'":
                made.append(value.replace("'", "'\\''"))
            else:
                made.append(_SPECIAL_IN_QUOTES.sub(r"\\\1", value) if quote else shlex.quote(value))
        elif character == "\\" and quote != "'":
            made.append(line[at : at + 2])
            at += 1
        else:
            if character in "'\"" and quote in ("", character):
                quote = "" if quote else character
            made.append(character)
        at += 1
    return "".join(made)
