"""`benchwright ingest`."""

from __future__ import annotations

from pathlib import Path

import click

from benchwright.cli.where import open_results, where_options
from benchwright.cli.working import Working


@click.command(epilog="Example: benchwright ingest /mnt/cluster/runs/*")
@click.argument("folders", nargs=-1, required=True, metavar="RUNDIR...")
@where_options
def command(folders: tuple[str, ...], base: str | None, store: str | None) -> int:
    """Add the runs in these folders to the store; unchanged ones are skipped."""
    from benchwright.core.errors import InvalidInput
    from benchwright.runs.run_folder import RunFolder

    failed = 0
    with Working("opening the store") as working, open_results(base, store) as results:
        for number, name in enumerate(folders, start=1):
            working.now(f"adding run {number:,} of {len(folders):,} to the store")
            try:
                added = results.ingest(RunFolder(Path(name).absolute()))
                working.echo(f"{name}: {'ingested' if added else 'already there'}")
            except InvalidInput as error:
                failed += 1
                working.echo(f"benchwright: {error}", err=True)
            except OSError as error:
                failed += 1
                working.echo(f"benchwright: {error.filename or name}: {error.strerror or error}", err=True)
    return 2 if failed else 0
