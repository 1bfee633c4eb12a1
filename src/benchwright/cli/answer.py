"""The answer of a command: text for people or, with `--json`, a body. Commands give both; here one is chosen."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click
import msgspec

from benchwright.cli.terminal import show

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])

_JSON = "benchwright.json"  # in the context: whether it was asked for


def _remember(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    ctx.meta[_JSON] = value


JSON_FLAG: dict[str, Any] = {"is_flag": True, "expose_value": False, "callback": _remember}


def json_option(help: str = "Print JSON.") -> Callable[[AnyFunction], AnyFunction]:
    """`--json` of a command that answers with JSON instead of text."""
    return click.option("--json", help=help, **JSON_FLAG)


def in_json() -> bool:
    """Whether the command that runs in this thread was asked for JSON."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_JSON))


def answer(body: Callable[[], object], text: Callable[[], str]) -> None:
    """Prints one of them; the other is not made."""
    if in_json():
        show(json.dumps(body(), indent=1, default=msgspec.to_builtins), nl=True)
        return
    words = text()
    show(words, nl=bool(words) and not words.endswith("\n"))
