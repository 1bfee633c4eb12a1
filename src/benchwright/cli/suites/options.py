"""Options of the commands that take a suite, and what they say, as one options."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from benchwright.cli.answer import answer, json_option
from benchwright.cli.options import options
from benchwright.core.errors import InvalidInput

if TYPE_CHECKING:
    from benchwright.kinds.suite.setup.install import IndexOptions

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


def index_options_from(values: Mapping[str, Any]) -> IndexOptions:
    from benchwright.kinds.suite.setup.install import IndexOptions

    return IndexOptions(**{name: values[name] for name in ("index_url", "indexes", "find_links", "installer")})


def outcome_options(function: AnyFunction) -> AnyFunction:
    """How the outcome of a phase is shown."""
    quiet = click.option("-q", "--quiet", is_flag=True, help="No progress.")
    return json_option("Print the result as JSON.")(quiet(function))


class PhaseOutcome(Protocol):
    """Outcome of a phase for a group or a benchmark."""

    @property
    def name(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def detail(self) -> str | None: ...


def show_outcome(key: str, done: Sequence[PhaseOutcome], text: str, *, log_lines: int = 0) -> int:
    """Prints what was done, as `text` or below `key` of a JSON object, and why some failed; returns the exit code."""
    answer(lambda: {key: done}, lambda: text)
    failed = [x for x in done if x.status == "failed"]
    for one in failed:
        log = getattr(one, "log", None)
        click.echo(f"benchwright: {one.name}: {one.detail}" + (f"; its log: {log}" if log else ""), err=True)
        for line in _last_lines(log, log_lines) if log and log_lines else ():
            click.echo(f"    | {line}", err=True)
    return 1 if failed else 0


def _last_lines(log: str, count: int) -> list[str]:
    try:
        with gzip.open(log, "rb") if log.endswith(".gz") else open(log, "rb") as file:
            return file.read().decode(errors="replace").splitlines()[-count:]
    except (OSError, EOFError):
        return []


def suite_targets_of(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The named suite files, else that of the environment."""
    from benchwright.kinds.suite.suites import suite_from_environment

    named = (*values["suites"], *values["configs"])
    known = suite_from_environment(os.environ)
    if not named and known is None:
        raise InvalidInput("no suite is named", remedy="name a suite file, or set BENCHWRIGHT_CONFIG")
    return named or (str(known),)


_INDEX_OPTIONS: list[Callable[[AnyFunction], AnyFunction]] = [
    click.option("--index-url", metavar="URL", help="Package index.  [default: as configured for uv or pip]"),
    click.option("--index", "indexes", multiple=True, metavar="URL", help="Additional package index. Repeatable."),
    click.option("--find-links", multiple=True, metavar="PLACE", help="Folder or page with packages. Repeatable."),
    click.option("--installer", type=click.Choice(["uv", "pip"]), help="Installer.  [default: uv if it is found]"),
]
