"""`benchwright import`."""

from __future__ import annotations

from pathlib import Path

import click

from benchwright.cli.where import open_results, where_options
from benchwright.cli.working import Working

OURS = "benchwright"  # as --from


@click.command(
    epilog="Examples: benchwright import hyperfine.json .benchmarks/ · benchwright import milabench runs/ · benchwright import /mnt/cluster/runs/*"
)
@click.argument("paths", nargs=-1, required=True, metavar="[TOOL] FILE...")
@click.option(
    "--from",
    "--format",
    "tool",
    metavar="TOOL",
    help="hyperfine, pytest-benchmark, google-benchmark, asv, driver, milabench, fai-pep, benchwright (run folders) or a plug-in; also as the first word."
    "  [default: by the content]",
)
@where_options
def command(paths: tuple[str, ...], tool: str | None, base: str | None, store: str | None) -> int:
    """Import results of other tools, or run folders of benchwright, into the store. Importing again changes nothing."""
    from benchwright.cli.store.run_folders import add_run, is_run_folder
    from benchwright.core.errors import InvalidInput
    from benchwright.exchange.registry import IMPORTERS, import_results, importer_named

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
