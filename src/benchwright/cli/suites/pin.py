"""`benchwright pin`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from benchwright.cli.suites.options import index_options, suite_options, suite_request_from, suite_targets_of

if TYPE_CHECKING:
    from benchwright.kinds.suite.setup.pin import Pinned


@click.command(epilog="Example: benchwright pin suite.yaml --select torch --variant cuda")
@suite_options
@click.option(
    "--variant", metavar="V", help="cpu, cuda, rocm, xpu, hpu or any word.  [default: by the machine or system file]"
)
@click.option("--constraints", multiple=True, metavar="FILE", help="Additional constraints file. Repeatable.")
@click.option("--from-scratch", "--from_scratch", is_flag=True, help="Ignore existing pins.")
@index_options
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(
    variant: str | None,
    constraints: tuple[str, ...],
    from_scratch: bool,
    index_url: str | None,
    indexes: tuple[str, ...],
    find_links: tuple[str, ...],
    installer: str | None,
    as_json: bool,
    quiet: bool,
    **values: object,
) -> int:
    """Pin package versions: write requirements.V.txt, with hashes if known, for each requirements.in of SUITE.

    Benchmarks of an install group share an environment, so they get the same versions. Indexes given here are written to
    the files. Exit code: 0 pinned, 1 a group has no solution, 2 wrong suite.
    """
    from benchwright.app.progress.terminal import open_progress
    from benchwright.kinds.suite.setup.install import IndexOptions
    from benchwright.kinds.suite.setup.pin import PinOptions, pin

    options = PinOptions(
        variant=variant,
        constraints=constraints,
        from_scratch=from_scratch,
        where=IndexOptions(index_url=index_url, indexes=indexes, find_links=find_links, installer=installer),
    )
    with open_progress(quiet=quiet) as progress:
        done = pin(suite_targets_of(values), suite_request_from(values), options, progress)
    click.echo(json.dumps({"groups": msgspec.to_builtins(done)}, indent=1) if as_json else _text(done), nl=as_json)
    for failed in (x for x in done if x.status == "failed"):
        click.echo(f"benchwright: {failed.name}: {failed.detail}", err=True)
    return 1 if any(x.status == "failed" for x in done) else 0


def _text(done: Sequence[Pinned]) -> str:
    from benchwright.report.text.numbers import counted

    lines = []
    for x in done:
        for file in x.files:
            about = "" if file.hashes else ", without hashes"
            word = "written" if file.changed else "unchanged"
            lines.append(f"{x.name}: {file.path}  {word}, {counted(len(file.packages), 'package')}{about}\n")
    return "".join(lines)
