"""The terminal: its width, its colours, and standard descriptors that are closed or that nobody reads."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

import click

from benchwright.core.errors import InvalidInput

if TYPE_CHECKING:
    from benchwright.core.errors import TooManyScripts
    from benchwright.options.table import Options

_RED, _YELLOW, _GREEN, _FAINT, _END = "\x1b[31m", "\x1b[33m", "\x1b[32m", "\x1b[2m", "\x1b[0m"
_RULES = (
    (re.compile(r"(FAILED[^:\n]*|▼ regressed|✗)"), _RED),
    (re.compile(r"(⚠|\? inconclusive|(?<=  )interrupted)"), _YELLOW),
    (re.compile(r"(▲ improved)"), _GREEN),
    (re.compile(r"^( saved: .*| {5}\| .*)$", re.MULTILINE), _FAINT),
)


def coloured(text: str) -> str:
    """`text` with what stands out in colour, if stdout is a terminal that wants it."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    if not terminal or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    for pattern, colour in _RULES:
        text = pattern.sub(rf"{colour}\1{_END}", text)
    return text


def terminal_width() -> int:
    """Of stdout if it is a terminal, else $COLUMNS, else 80."""
    if "COLUMNS" in os.environ or (sys.stdout is not None and sys.stdout.isatty()):
        import shutil  # with every compression there is: 3 ms

        return shutil.get_terminal_size((80, 24)).columns
    return 80


def fill_closed() -> None:
    """Opens standard streams that the caller closed (`>&-`) on /dev/null; else the next file opened would get our output."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one


def forget_stdout() -> None:
    """Discards further output; otherwise the interpreter complains about the broken pipe at exit."""
    if sys.stdout is not None:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)


def show(text: str | bytes, *, nl: bool = False) -> None:
    """On stdout; nobody may read it any more (`| head`), and the exit code tells how it went all the same."""
    try:
        click.echo(text, nl=nl)
    except BrokenPipeError:
        forget_stdout()


def ask(question: str) -> None:
    """Aborts unless the user agrees; InvalidInput if there is nobody to ask."""
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin is not None and sys.stdin.isatty():
            raise
        click.echo(err=True)
        raise InvalidInput("nothing was deleted: there is no terminal to ask on", remedy="add --yes") from None
    if not agreed:
        raise click.Abort


def with_all_scripts(options: Options, many: TooManyScripts) -> Options:
    """`options` with all scripts of its folder, if the user agrees on the terminal; else `many` is raised."""
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        raise many
    if not click.confirm(f"{many.where} {many.what}. Run all of them?", err=True):
        raise many
    return options.with_every_script()
