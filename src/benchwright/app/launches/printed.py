"""What Python code of this process prints, kept from the screen."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any


@contextmanager
def printed() -> Iterator[io.StringIO]:
    """Has all of it, that of loggers too; afterwards everything goes where it went before."""
    text, screen = io.StringIO(), sys.stderr
    before = {handler: handler.stream for handler in _handlers() if handler.stream in (sys.stdout, screen)}
    with redirect_stdout(text), redirect_stderr(text):
        for handler in before:
            handler.setStream(text)
        try:
            yield text
        finally:
            for handler in _handlers():
                if handler.stream is text:  # some may be new
                    handler.setStream(before.get(handler, screen))


def _handlers() -> list[Any]:
    loggers = [logging.getLogger(), *logging.getLogger().manager.loggerDict.values()]
    found = [handler for logger in loggers if isinstance(logger, logging.Logger) for handler in logger.handlers]
    return [each for each in found if isinstance(each, logging.StreamHandler)]
