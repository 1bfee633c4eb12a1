"""`--notify`, of every command that ends with verdicts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from benchwright.executors.observer import Observer

if TYPE_CHECKING:  # most commands notify nobody
    from benchwright.regress.notify.notice import Notice
    from benchwright.regress.notify.targets import Target

F = TypeVar("F", bound=Callable[..., Any])


def notify_option(function: F) -> F:
    """The command gets `notify`, a tuple of texts."""
    return click.option(
        "--notify",
        multiple=True,
        metavar="WHERE",
        help="Send the verdict: webhook:URL, github:FILE (a comment), annotations, junit:FILE. Repeatable.",
    )(function)


def targets(notify: tuple[str, ...]) -> list[Target]:
    """Refused before anything is measured if they are wrong."""
    if not notify:
        return []
    from benchwright.regress.notify.targets import targets_of

    return targets_of(notify)


def tell(notice: Notice, chosen: list[Target], base: Path, code: int, observer: Observer | None = None) -> int:
    """Sends the notice and returns the exit code: `code`, unless it is a success and no receiver could be reached."""
    from benchwright.regress.notify.notify import notify

    return notify(notice, chosen, observer or _Lines(), spool=base).exit_code(code)


class _Lines(Observer):
    """On standard error, for commands without a panel."""

    def on_trouble(self, text: str) -> None:
        click.echo(f"benchwright: {text}", err=True)

    def on_note(self, text: str) -> None:
        click.echo(text, err=True)
