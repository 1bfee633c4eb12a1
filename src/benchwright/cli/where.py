"""Options that the commands which look at results share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


def where_options(function: AnyFunction) -> AnyFunction:
    """`--base` and `--store`."""
    function = click.option(
        "--store", metavar="URL", help="The store.  [default: $BENCHWRIGHT_STORE, else store.db in the base]"
    )(function)
    return click.option(
        "--base",
        metavar="DIR",
        help="Where results are kept.  [default: $BENCHWRIGHT_BASE, else the user's data folder]",
    )(function)


def open_results(base: str | None, store: str | None, *, patience_s: float | None = None) -> Any:
    """The results of that base and store. `patience_s`: how long to wait for a store that others have locked."""
    from benchwright.app.results.kept_runs import Results

    return Results.choose(base, store, os.environ, patience_s=patience_s)
