"""`benchwright install`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from benchwright.cli.suites.options import index_options, suite_options, suite_request_from, suite_targets_of
from benchwright.core.numbers.quantities import format_duration

if TYPE_CHECKING:
    from benchwright.environments.built import Installed

_EXAMPLES = """\b
Examples:
  benchwright install suite.yaml
  benchwright install suite.yaml --select resnet50 --force
  benchwright install suite.yaml --variant cuda --index https://packages.example/cu128
"""


@click.command(epilog=_EXAMPLES)
@suite_options
@click.option("--force", is_flag=True, help="Recreate the environments even if nothing changed.")
@click.option("--update", is_flag=True, help="Recreate them if newer versions fit.")
@click.option(
    "--variant", metavar="V", help="Install requirements.V.txt, or `unpinned`, instead of the suite's choice."
)
@click.option("--constraints", multiple=True, metavar="FILE", help="Additional constraints file. Repeatable.")
@click.option(
    "--jobs", type=click.IntRange(1), metavar="N", help="Environments to install in parallel.  [default: up to 4]"
)
@index_options
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(
    force: bool,
    update: bool,
    variant: str | None,
    constraints: tuple[str, ...],
    jobs: int | None,
    index_url: str | None,
    indexes: tuple[str, ...],
    find_links: tuple[str, ...],
    installer: str | None,
    as_json: bool,
    quiet: bool,
    **values: object,
) -> int:
    """Create SUITE's environments, one per install group; existing ones are reused until something changes.

    If an install fails, the package is named and the previous environment stays in use. Exit code: 0 success, 1 an
    environment failed, 2 wrong suite, 3 the base folder cannot be used.
    """
    from benchwright.app.progress.terminal import open_progress
    from benchwright.kinds.suite.setup.install import IndexOptions, InstallOptions, install

    options = InstallOptions(
        force=force,
        update=update,
        variant=variant,
        jobs=jobs,
        constraints=constraints,
        where=IndexOptions(index_url=index_url, indexes=indexes, find_links=find_links, installer=installer),
    )
    with open_progress(quiet=quiet) as progress:
        done = install(suite_targets_of(values), suite_request_from(values), options, progress)
    click.echo(json.dumps({"groups": msgspec.to_builtins(done)}, indent=1) if as_json else _text(done), nl=as_json)
    for failed in (x for x in done if x.status == "failed"):
        place = f"; its log: {failed.log}" if failed.log else ""
        click.echo(f"benchwright: {failed.name}: {failed.detail}{place}", err=True)
    return 1 if any(x.status == "failed" for x in done) else 0


def _text(done: Sequence[Installed]) -> str:
    from benchwright.report.text.numbers import counted

    width = max(len(x.name) for x in done)
    lines = []
    for x in done:
        about = [
            x.status,
            f"Python {x.python}" if x.python else "",
            counted(len(x.packages), "package") if x.python else "",  # else in an environment that is not ours
        ]
        if x.status == "built":
            about.append(format_duration(x.seconds))
        lines.append(f"{x.name:<{width}}  {', '.join(filter(None, about))}  {x.path}")
    return "\n".join(lines) + "\n"
