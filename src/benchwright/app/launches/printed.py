"""What Python code of this process prints, kept from the screen."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import TextIO


@contextmanager
def printed() -> Iterator[io.StringIO]:
    """Has all of it, that of loggers too; afterwards everything goes where it went before.

    No handler is changed: some compute their stream and cannot be given another.
    """
    text = _Captured(sys.stderr)
    with ExitStack() as until_the_end:
        for handler in _handlers_on(sys.stdout, sys.stderr):
            to_text = _ToText(handler, text)
            handler.addFilter(to_text)
            until_the_end.callback(handler.removeFilter, to_text)
        until_the_end.callback(text.end)
        until_the_end.enter_context(redirect_stdout(text))
        until_the_end.enter_context(redirect_stderr(text))
        yield text


class _Captured(io.StringIO):
    """Keeps what is written, until `end`: whoever still holds it then writes to the screen."""

    def __init__(self, screen: TextIO) -> None:
        super().__init__()
        self._screen = screen
        self._ended = False

    def end(self) -> None:
        self._ended = True

    def write(self, text: str) -> int:
        return self._screen.write(text) if self._ended else super().write(text)

    def flush(self) -> None:
        if self._ended:
            self._screen.flush()


class _ToText(logging.Filter):
    """The last filter of a handler: writes the record into the text instead of onto the screen."""

    def __init__(self, handler: logging.StreamHandler[TextIO], text: io.StringIO) -> None:
        super().__init__()
        self._handler = handler
        self._text = text

    def filter(self, record: logging.LogRecord) -> bool:
        self._text.write(self._handler.format(record) + self._handler.terminator)
        return False


def _handlers_on(*screens: TextIO) -> list[logging.StreamHandler[TextIO]]:
    loggers = [logging.getLogger(), *logging.getLogger().manager.loggerDict.values()]
    found = {handler for logger in loggers if isinstance(logger, logging.Logger) for handler in logger.handlers}
    return [each for each in found if isinstance(each, logging.StreamHandler) and each.stream in screens]
