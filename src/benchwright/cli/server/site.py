"""`benchwright site`."""

from __future__ import annotations

from pathlib import Path

import click

from benchwright.cli.spinner import Working
from benchwright.cli.store_options import open_results, where_options
from benchwright.report.text.numbers import counted
from benchwright.server.site import write_site


@click.command(epilog="Example: benchwright site public")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(0),
    default=200,
    show_default=True,
    metavar="N",
    help="Of the newest N runs the whole report, too.",
)
@where_options
def command(folder: str, limit: int, base: str | None, store: str | None) -> None:
    """Write the pages of `serve` as files into DIR: what changed, benchmarks, runs, histories, machines."""
    with Working("writing the pages"), open_results(base, store) as results:
        pages = write_site(results.existing_store, results.base.path, Path(folder), most_runs=limit)
    click.echo(f"{counted(pages, 'page')}: open {Path(folder) / 'index.html'}")
