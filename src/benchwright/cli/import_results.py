"""`benchwright import`."""

from __future__ import annotations

from pathlib import Path

import click

from benchwright.cli.looking import open_results, where_options


@click.command(epilog="Example: benchwright import hyperfine.json .benchmarks/")
@click.argument("paths", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--from",
    "tool",
    metavar="TOOL",
    help="hyperfine, pytest-benchmark, google-benchmark, asv or driver.  [default: told from the content]",
)
@where_options
def command(paths: tuple[str, ...], tool: str | None, base: str | None, store: str | None) -> int:
    """Put results of other tools into the store; the same file twice is kept once."""
    from benchwright.importers.registry import import_results

    problems = 0
    with open_results(base, store) as results:
        for path in paths:
            imported = import_results(Path(path), tool=tool)
            for run in imported.runs:
                added = results.keep(run)
                click.echo(f"{run.id}: {len(run.results)} benchmarks, {'imported' if added else 'already there'}")
            for problem in imported.problems:
                problems += 1
                click.echo(f"benchwright: {problem}", err=True)
    return 1 if problems else 0
