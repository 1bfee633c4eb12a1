"""Options of the commands that take a suite, and what they say, as one request."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from benchwright.cli.options import options
from benchwright.core.errors import InvalidInput

if TYPE_CHECKING:
    from benchwright.core.inputs.request import SuiteRequest

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


def suite_options(function: AnyFunction) -> AnyFunction:
    """Which suite, which of its benchmarks, on which system, in which base folder."""
    names = ("configs", "system", "base", "select", "exclude", "overrides", "use_current_env")
    return click.argument("suites", nargs=-1, metavar="[SUITE]...")(options(*names)(function))


def index_options(function: AnyFunction) -> AnyFunction:
    """Where packages come from."""
    for option in reversed(_INDEX_OPTIONS):
        function = option(function)
    return function


def suite_targets_of(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The named suite files, else that of the environment."""
    from benchwright.kinds.suite.suites import suite_from_environment

    named = (*values["suites"], *values["configs"])
    known = suite_from_environment(os.environ)
    if not named and known is None:
        raise InvalidInput("no suite is named", remedy="name a suite file, or set BENCHWRIGHT_CONFIG")
    return named or (str(known),)


def suite_request_from(values: Mapping[str, Any]) -> SuiteRequest:
    """The options as one request."""
    from benchwright.app.requests import suite_request_of
    from benchwright.runs.base_folder import BaseFolder

    return suite_request_of(values, BaseFolder.choose(values["base"], os.environ).path)


_INDEX_OPTIONS: list[Callable[[AnyFunction], AnyFunction]] = [
    click.option("--index-url", metavar="URL", help="Package index.  [default: as configured for uv or pip]"),
    click.option("--index", "indexes", multiple=True, metavar="URL", help="Additional package index. Repeatable."),
    click.option("--find-links", multiple=True, metavar="PLACE", help="Folder or page with packages. Repeatable."),
    click.option("--installer", type=click.Choice(["uv", "pip"]), help="Installer.  [default: uv if it is found]"),
]
