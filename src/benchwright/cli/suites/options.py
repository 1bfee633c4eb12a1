"""Options of the commands that take a suite, and what they say, as one request."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import click

from benchwright.core.errors import InvalidInput
from benchwright.core.request import SuiteRequest

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


def suite_options(function: AnyFunction) -> AnyFunction:
    """Which suite, what of it, on which system, out of which base folder."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def index_options(function: AnyFunction) -> AnyFunction:
    """Where packages come from."""
    for option in reversed(_INDEX_OPTIONS):
        function = option(function)
    return function


def suite_targets_of(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The suite files that are meant: those named, else that of the environment."""
    from benchwright.kinds.suite.suites import suite_from_environment

    named = (*values["suites"], *values["config"])
    known = suite_from_environment(os.environ)
    if not named and known is None:
        raise InvalidInput("no suite is named", remedy="name a suite file, or set BENCHWRIGHT_CONFIG")
    return named or (str(known),)


def suite_request_of(values: Mapping[str, Any]) -> SuiteRequest:
    """The options as one request; `values` may hold those of other decorators too."""
    from benchwright.runs.base_folder import BaseFolder

    python = None
    if values["use_current_env"]:
        from benchwright.kinds.suite.suites import current_python

        python = current_python()
    return SuiteRequest(
        base=str(BaseFolder.choose(values["base"], os.environ).path),
        select=words_of(values["select"]),
        exclude=words_of(values["exclude"]),
        overrides=tuple(values["overrides"]),
        system=values["system"],
        use_current_env=python,
    )


def words_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Comma lists, each option any number of times."""
    return tuple(word.strip() for text in texts for word in text.split(",") if word.strip())


_OPTIONS: list[Callable[[AnyFunction], AnyFunction]] = [
    click.argument("suites", nargs=-1, metavar="[SUITE]..."),
    click.option(
        "--config",
        multiple=True,
        metavar="SUITE",
        help="The same as SUITE.  [default: $BENCHWRIGHT_CONFIG, else $MILABENCH_CONFIG]",
    ),
    click.option(
        "--system", metavar="FILE", help="The system file.  [default: $BENCHWRIGHT_SYSTEM, else $MILABENCH_SYSTEM]"
    ),
    click.option(
        "--base",
        metavar="DIR",
        help="Where everything is kept.  [default: $BENCHWRIGHT_BASE, else the user's data folder]",
    ),
    click.option(
        "--select", multiple=True, metavar="LIST", help="Only these names, groups or tags, separated by commas."
    ),
    click.option("--exclude", multiple=True, metavar="LIST", help="Not these names, groups or tags."),
    click.option(
        "--override",
        "overrides",
        multiple=True,
        metavar="KEY=VALUE",
        help="Change the suite, such as resnet.argv.--batch-size=8. Repeatable.",
    ),
    click.option(
        "--use-current-env",
        "--use_current_env",
        is_flag=True,
        help="Use the environment you are in instead of one for each install group.",
    ),
]

_INDEX_OPTIONS: list[Callable[[AnyFunction], AnyFunction]] = [
    click.option("--index-url", metavar="URL", help="The package index.  [default: that of uv's or pip's settings]"),
    click.option("--index", "indexes", multiple=True, metavar="URL", help="One more package index. Repeatable."),
    click.option("--find-links", multiple=True, metavar="PLACE", help="A folder or page of packages. Repeatable."),
    click.option("--installer", type=click.Choice(["uv", "pip"]), help="What installs.  [default: uv if there is one]"),
]
