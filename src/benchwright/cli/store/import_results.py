"""`benchwright import`."""

from __future__ import annotations

from pathlib import Path

import click

from benchwright.cli.spinner import Working
from benchwright.cli.store_options import open_results, where_options
from benchwright.core.errors import InvalidInput
from benchwright.results.kept_runs import Results
from benchwright.runs.importers import IMPORTERS
from benchwright.runs.run_folder import RunFolder

OURS = "benchwright"  # as --from


@click.command(
    epilog="Examples: benchwright import hyperfine.json .benchmarks/ · benchwright import asv results/ · benchwright import /mnt/cluster/runs/*"
)
@click.argument("paths", nargs=-1, required=True, metavar="[TOOL] FILE...")
@click.option(
    "--from",
    "--format",
    "tool",
    metavar="TOOL",
    help=f"{', '.join(IMPORTERS.built_in)}, benchwright (run folders) or a plug-in; also as the first word."
    "  [default: by the content]",
)
@where_options
def command(paths: tuple[str, ...], tool: str | None, base: str | None, store: str | None) -> int:
    """Import results of other tools, or run folders of benchwright, into the store. Importing again changes nothing."""

    from benchwright.runs.importers import import_results, importer_named

    if tool is None and len(paths) > 1 and (paths[0] in IMPORTERS or paths[0] == OURS) and not Path(paths[0]).exists():
        tool, *rest = paths
        paths = tuple(rest)
    if tool not in (None, OURS):
        importer_named(tool)  # report a misspelt name once, not for every file
    problems, wrong = 0, 0
    with Working("opening the store") as working, open_results(base, store) as results:
        for number, path in enumerate(paths, start=1):
            working.now(f"importing {path} ({number:,} of {len(paths):,})")
            if tool == OURS or (tool is None and is_run_folder(path)):
                wrong += not add_run(path, results, working)
                continue
            try:
                imported = import_results(Path(path), tool=tool)
            except InvalidInput as error:
                wrong += 1
                working.echo(f"benchwright: {error}", err=True)
                continue
            for run in imported.runs:
                added = results.keep(run)
                working.echo(f"{run.id}: {len(run.results)} benchmarks, {'imported' if added else 'already imported'}")
            for problem in imported.problems:
                problems += 1
                working.echo(f"benchwright: {problem}", err=True)
            if not imported.runs and not imported.problems:
                problems += 1
                working.echo(f"benchwright: {path}: no results in it; was the tool interrupted?", err=True)
    return 2 if wrong else 1 if problems else 0


# `benchwright import` of run folders.


_OURS = ("plan.json", "run.json")  # files that only a run folder of ours has


def is_run_folder(path: str) -> bool:
    """Whether `path` is the folder of a run that benchwright made."""
    return any((Path(path) / name).exists() for name in _OURS)


def add_run(name: str, results: Results, working: Working) -> bool:
    """Adds the run in the folder `name` to the store, and says so; False if it cannot be."""
    try:
        added = results.ingest(RunFolder(Path(name).absolute()))
    except InvalidInput as error:
        working.echo(f"benchwright: {error}", err=True)
        return False
    except OSError as error:
        working.echo(f"benchwright: {error.filename or name}: {error.strerror or error}", err=True)
        return False
    working.echo(f"{name}: {'ingested' if added else 'already there'}")
    return True
