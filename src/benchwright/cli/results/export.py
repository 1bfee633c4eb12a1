"""`benchwright export`."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from benchwright.cli.options import options
from benchwright.cli.where import open_results, where_options
from benchwright.cli.working import Working
from benchwright.core.errors import InvalidInput
from benchwright.report.export.base import EXPORTERS, Exporter, exporter_for

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
    remote_reporter="Send the runs there instead, in FAI-PEP's form, after what waits from earlier runs.",
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
    from benchwright.compat.faipep.delivery import send_reports
    from benchwright.compat.faipep.remote.endpoint import endpoint_of, token_of
    from benchwright.compat.faipep.remote.spool import Spool
    from benchwright.compat.faipep.reports import HarnessReport, reports_of
    from benchwright.runs.base_folder import BaseFolder

    folder = BaseFolder.choose(base, os.environ)
    spool = Spool(folder.path)
    if remote is None:
        known = sorted({str(each.content.endpoint) for each in spool.waiting()})
        remedy = f"name it: --remote-reporter '{known[0]}'" if known else "nothing waits to be sent"
        raise InvalidInput("needs the server to send to", where="--flush", remedy=remedy)
    if flush and runs:
        raise InvalidInput("sends no run of its own", where="--flush", remedy="leave out the runs, or --flush")
    endpoint, secret = endpoint_of(remote), token_of(token)
    found: dict[str, Sequence[HarnessReport]] = {}
    with Working("reading the runs") as working:
        if not flush:
            with open_results(base, store) as results:
                for run in results.each(runs or ("last",)):
                    made = reports_of(run)
                    found[run.id] = made.reports
                    for line in made.left_out:
                        working.echo(f"benchwright: no records of {line}", err=True)
        working.now(f"sending to {endpoint.url}")
        for line in send_reports(found, endpoint, secret, folder.path):
            working.echo(f"benchwright: {line}", err=True)
    left = spool.waiting()
    if flush and not left:
        click.echo("nothing waits to be sent any more", err=True)
    for other in sorted({str(each.content.endpoint) for each in left} - {str(endpoint)}):
        click.echo(f"benchwright: results wait for another reporter, '{other}'", err=True)
    return 1 if any(each.content.endpoint == endpoint for each in left) else 0


def _to_stdout(exporter: Exporter, runs: Sequence[Run]) -> None:
    """By way of a file: half of an export that failed is worth nothing."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "export")
        exporter.export(runs, path)
        with open(path, "rb") as handle:
            shutil.copyfileobj(handle, sys.stdout.buffer)
