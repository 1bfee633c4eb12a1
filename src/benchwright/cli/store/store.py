"""`benchwright store`."""

from __future__ import annotations

import click

from benchwright import results as kept
from benchwright.cli.answer import answer, json_option
from benchwright.cli.spinner import Working
from benchwright.cli.store_options import open_results, where_options


@click.group(epilog="Example: benchwright store check")
def command() -> None:
    """Check, rebuild and migrate the store, an index of the run folders."""


@command.command(epilog="Example: benchwright store check --json")
@click.option("--folders", is_flag=True, help="Also check the store against every run folder.")
@json_option("Print as JSON.")
@where_options
def check(folders: bool, base: str | None, store: str | None) -> int:
    """Check that the store is intact and its numbers unchanged. Exit code: 0 intact, 1 problems.

    Duplicate runs and names are noted; they are no problem.
    """
    with Working("checking the store") as working, open_results(base, store) as results:
        problems = results.existing_store.check()
        version = results.existing_store.schema_version()
        notes = results.existing_store.duplicates() if not problems else []
        if folders and not problems:
            working.now("comparing the store with the run folders")
            problems = list(kept.check_store.folder_problems(results))
    lines = problems or [f"{results.where}: intact, version {version}"]
    answer(
        lambda: {"url": results.where, "version": version, "problems": problems, "notes": notes},
        lambda: "\n".join([*lines, *(f"note: {note}" for note in notes)]),
    )
    return 1 if problems else 0


@command.command(epilog="Example: benchwright store rebuild")
@where_options
def rebuild(base: str | None, store: str | None) -> int:
    """Rebuild the store from the run folders, whatever its state; runs that only the old store has are kept.

    Exit code: 1 if a run could not be added.
    """
    total = failed = 0
    with Working("rebuilding the store") as working, open_results(base, store) as results:
        for outcome in kept.rebuild.rebuild(results):
            working.now(f"rebuilding the store: {total + 1:,} runs")
            if outcome.problem:
                message = outcome.problem if outcome.run is None else f"{outcome.run}: {outcome.problem}"
                working.echo(f"benchwright: {message}", err=True)
            total += outcome.run is not None
            failed += outcome.run is not None and outcome.problem is not None
    click.echo(f"{total - failed} of {total} runs are in {results.where}")
    return 1 if failed else 0


@command.command(epilog="Example: benchwright store send --store https://bench.example.org")
@where_options
def send(base: str | None, store: str | None) -> int:
    """Send the runs that wait for the store because its server was away. Exit code: 1 if one still waits."""
    results = open_results(base, store)
    waiting = kept.run_digest.unstored(results.base, results.url)
    with Working(f"sending {len(waiting)} runs"), results:
        _ = results.store  # says why, if it is still away
        kept.run_digest.take_unstored(results.base, results.url, lambda: open_results(base, store))
    left = kept.run_digest.unstored(results.base, results.url)
    click.echo(f"{len(waiting) - len(left)} of {len(waiting)} waiting runs are in {results.where}")
    for path in left:
        click.echo(
            f"benchwright: {path.name} still waits; why: benchwright import {results.base.runs / path.name}", err=True
        )
    return 1 if left else 0


@command.command(epilog="Example: benchwright store migrate")
@where_options
def migrate(base: str | None, store: str | None) -> None:
    """Upgrade the store to this version of benchwright."""
    with Working("upgrading the store") as working, open_results(base, store) as results:
        results.existing_store.migrate()
        working.echo(f"{results.where}: version {results.existing_store.schema_version()}")
