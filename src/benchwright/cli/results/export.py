"""`benchwright export`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchwright.cli.where import open_results, where_options
from benchwright.cli.working import Working
from benchwright.core.errors import InvalidInput

if TYPE_CHECKING:
    from benchwright.core.run import Run

_FORMATS = {".json": "json", ".csv": "csv", ".parquet": "parquet"}
_FOLDERS = ("milabench",)


@click.command(epilog="Example: benchwright export last --output samples.parquet")
@click.argument("runs", nargs=-1)
@click.option("-o", "--output", required=True, metavar="FILE", help="File to write; for milabench, a folder.")
@click.option(
    "--format",
    "format_",
    type=click.Choice([*_FORMATS.values(), *_FOLDERS]),
    help="milabench writes a folder of .data files per run.  [default: by the file's extension]",
)
@where_options
def command(runs: tuple[str, ...], output: str, format_: str | None, base: str | None, store: str | None) -> None:
    """Export the raw samples of RUNS (default: last) for other tools."""
    from benchwright.exchange.milabench.export import export_milabench
    from benchwright.report.export import export_csv, export_json, export_parquet

    chosen = format_ or _FORMATS.get(Path(output).suffix)
    if chosen is None:
        raise InvalidInput(
            f"unknown format for {output}",
            where="--output",
            remedy="use .json, .csv or .parquet, or give --format",
        )
    write = {"json": export_json, "csv": export_csv, "parquet": export_parquet, "milabench": export_milabench}[chosen]
    with Working("reading the runs") as working:
        with open_results(base, store) as results:
            found = results.each(runs or ("last",))
        working.now("writing the samples")
        if output != "-":
            write(found, Path(output))
    if output == "-":
        _to_stdout(write, found)
        return
    click.echo(f"written: {output}", err=True)


def _to_stdout(write: Callable[[Sequence[Run], Path], None], runs: Sequence[Run]) -> None:
    """By way of a file: half of an export that failed is worth nothing."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "export"
        write(runs, path)
        with open(path, "rb") as handle:
            shutil.copyfileobj(handle, sys.stdout.buffer)
