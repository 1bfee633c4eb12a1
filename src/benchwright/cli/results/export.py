"""`benchwright export`."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from benchwright.cli.options import options
from benchwright.cli.spinner import Working
from benchwright.cli.store_options import open_results, where_options
from benchwright.core.errors import InvalidInput
from benchwright.options.table import Options
from benchwright.report.export.base import EXPORTERS, Exporter, exporter_for
from benchwright.runs.base_folder import BaseFolder

if TYPE_CHECKING:
    from benchwright.core.run import Run


@click.command(epilog="Example: benchwright export last --output samples.parquet")
@click.argument("runs", nargs=-1)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="File to write; for the format of another tool, a folder or a server's URL.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(EXPORTERS.names()),
    help="json and csv hold everything as text, parquet as a table; the others are for the tools they are called after."
    "  [default: by the file's extension]",
)
@options(
    remote_reporter="Send the runs to this server instead, after what waits from earlier runs.",
    remote_access_token="Token for --remote-reporter, or @FILE that holds it.  [default: $BENCHWRIGHT_REMOTE_TOKEN]",  # noqa: S106  # a help text
)
@click.option("--flush", is_flag=True, help="With --remote-reporter: send only what waits from earlier runs.")
@where_options
def command(
    runs: tuple[str, ...],
    output: str | None,
    format_: str | None,
    remote_reporter: str | None,
    remote_access_token: str | None,
    flush: bool,
    base: str | None,
    store: str | None,
) -> int:
    """Export the raw samples of RUNS (default: last) for other tools."""
    if remote_reporter is not None or flush:
        if output is not None or format_ is not None:
            raise InvalidInput("writes no file", where="--remote-reporter", remedy="leave out --output and --format")
        return _send(runs, remote_reporter, remote_access_token, base, store, flush=flush)
    if output is None:
        raise InvalidInput("names no file to write", where="--output", remedy="add -o FILE, such as -o samples.csv")
    exporter = exporter_for(output, format_)
    if exporter is None:
        raise InvalidInput(
            f"unknown format for {output}",
            where="--output",
            remedy="use .json, .csv or .parquet, or give --format",
        )
    if output == "-" and exporter.suffix is None:
        raise InvalidInput(
            f"{format_} is no text to print", where="--output", remedy="give the name of a file or folder"
        )
    with Working("reading the runs") as working:
        with open_results(base, store) as results:
            found = results.each(runs or ("last",))
        working.now("writing the samples")
        remarks = exporter.export(found, output) if output != "-" else ()
    if output == "-":
        _to_stdout(exporter, found)
        return 0
    for remark in remarks:
        click.echo(f"benchwright: {remark}", err=True)
    click.echo(f"written: {output}", err=True)
    return 0


def _send(
    runs: tuple[str, ...],
    remote: str | None,
    token: str | None,
    base: str | None,
    store: str | None,
    *,
    flush: bool,
) -> int:
    """1 if the server did not take everything; that waits in the base folder."""
    from benchwright.runs.delivery import open_deliveries

    if flush and runs:
        raise InvalidInput("sends only runs that wait", where="--flush", remedy="leave out the runs, or --flush")
    folder = BaseFolder.choose(base, os.environ)
    deliveries = open_deliveries(Options(remote_reporter=remote or "", remote_access_token=token), folder.path)
    found: Sequence[Run] = ()
    with Working("reading the runs") as working:
        if not flush:
            with open_results(base, store) as results:
                found = results.each(runs or ("last",))
        working.now("sending")
        tell = partial(_tell, working)
        complete = [delivery.catch_up(found, tell) for delivery in deliveries]
    return 0 if all(complete) else 1


def _tell(working: Working, line: str) -> None:
    working.echo(f"benchwright: {line}", err=True)


def _to_stdout(exporter: Exporter, runs: Sequence[Run]) -> None:
    """By way of a file: half of an export that failed is worth nothing."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "export")
        exporter.export(runs, path)
        with open(path, "rb") as handle:
            shutil.copyfileobj(handle, sys.stdout.buffer)
