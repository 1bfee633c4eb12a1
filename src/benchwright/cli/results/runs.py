"""`benchwright runs`: list, delete, prune, annotate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from benchwright import results as kept
from benchwright.cli.answer import answer, json_option
from benchwright.cli.spinner import Working
from benchwright.cli.store_options import open_results, where_options
from benchwright.cli.terminal import ask, terminal_width
from benchwright.core.errors import InvalidInput, StoreTrouble
from benchwright.core.quantities import format_bytes, parse_duration, parse_size
from benchwright.options.values import label_of
from benchwright.report.run_list import run_list

_PATIENCE_S = 1.0  # whoever lists runs does not want to wait for a store that is locked
_SORTS: dict[str, Callable[[Any], Any]] = {
    "name": lambda row: row.name,
    "status": lambda row: row.status,
    "size": lambda row: -row.size_bytes,
}


class ListByDefault(click.Group):
    """`benchwright runs --status failed` means `runs list --status failed`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # A word can only be a misspelt command: the list takes none.
        if not args or (args[0].startswith("-") and args[0] not in ("-h", "--help")):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(cls=ListByDefault, epilog="Example: benchwright runs --status failed --since 2026-11-01")
def command() -> None:
    """List (the default), delete, prune and annotate runs."""


@command.command("list", epilog="Example: benchwright runs --name 'train*' --label author=google")
@click.option("--name", metavar="GLOB", help="Runs whose name matches.")
@click.option("--benchmark", metavar="GLOB", help="Runs that measured a benchmark whose name matches.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Runs with this tag. Repeatable.")
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Runs with this label. Repeatable.")
@click.option("--machine", metavar="MACHINE", help="Runs made on this machine: its host name or fingerprint.")
@click.option("--since", metavar="DATE", help="Runs started on or after this date (ISO 8601).")
@click.option("--until", metavar="DATE", help="Runs started by this date; a day counts as a whole.")
@click.option("--text", metavar="WORD", help="Runs with this word in a name, label or annotation.")
@click.option(
    "--status", type=click.Choice(["ok", "failed", "skipped", "interrupted", "running", "killed", "unreadable"])
)
@click.option("--sort", type=click.Choice(["started", "name", "status", "size"]), default="started", show_default=True)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1),
    default=30,
    show_default=True,
    metavar="N",
    help="At most N runs, newest first.",
)
@json_option("Print as JSON.")
@where_options
def list_(labels: tuple[str, ...], sort: str, limit: int, base: str | None, store: str | None, **wanted: Any) -> int:
    """List the runs of the base folder and of the store, newest first; unfinished ones too.

    Exit code: 3 if the store cannot be used; runs that only it has are not listed then.
    """
    with Working("listing the runs"), open_results(base, store, patience_s=_PATIENCE_S) as results:
        listed = kept.run_index.list_runs(results, labels=dict(map(label_of, labels)), limit=limit, **wanted)
    rows = sorted(listed.rows, key=_SORTS[sort]) if sort != "started" else listed.rows
    for row in rows:
        if row.problem:
            click.echo(f"benchwright: {row.id} cannot be read: {row.problem}", err=True)
    if listed.trouble is not None:
        click.echo(f"benchwright: only runs of the base folder are listed: {listed.trouble}", err=True)
    answer(lambda: rows, lambda: run_list(rows, width=terminal_width()))
    return 0 if listed.trouble is None else listed.trouble.exit_code


@command.command(epilog="Example: benchwright runs delete train.2026-11-01_10:00:00 --yes")
@click.argument("runs", nargs=-1, required=True)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@where_options
def delete(runs: tuple[str, ...], yes: bool, base: str | None, store: str | None) -> int:
    """Delete RUNS: their folders, with all raw samples, and their entries in the store."""
    with open_results(base, store) as results:
        meant = kept.admin.names_of(results, runs)
        if not yes:
            names = ", ".join(run.id for run in meant)
            ask(f"Delete {names} with all raw samples?")
        trouble = []
        for run in meant:
            deleted = kept.admin.delete_run(results, run)
            click.echo(f"deleted: {run.id} ({format_bytes(deleted.freed_bytes)})")
            for baseline in deleted.baselines:
                click.echo(f"benchwright: baseline '{baseline}' was deleted with it", err=True)
            trouble += [deleted.trouble] if deleted.trouble else []
    return _said(trouble)


@command.command(epilog="Example: benchwright runs prune --keep 30d --max-size 20GB --yes")
@click.option("--keep", metavar="TIME", help="Delete runs older than this, such as 30d.")
@click.option("--max-size", metavar="SIZE", help="Delete the oldest runs until the rest fit into this, such as 20GB.")
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@where_options
def prune(keep: str | None, max_size: str | None, dry_run: bool, yes: bool, base: str | None, store: str | None) -> int:
    """Delete old runs, except baselines and running ones.

    With --store, --keep also deletes the old runs that only that store has, those of other machines; on a server this takes a token
    for admin.
    """
    if keep is None and max_size is None:
        raise InvalidInput("no limit given", where="prune", remedy="give --keep 30d, --max-size 20GB or both")
    with open_results(base, store) as results:
        meant = kept.admin.to_prune(
            results,
            keep_s=None if keep is None else parse_duration(keep, where="--keep"),
            max_bytes=None if max_size is None else parse_size(max_size, where="--max-size"),
            of_store=store is not None,
        )
        if not meant:
            click.echo("nothing to delete")
            return 0
        for run in meant:
            click.echo(f"{'would delete' if dry_run else 'to delete'}: {run.id}")
        if dry_run:
            return 0
        if not yes:
            ask(f"Delete these {len(meant)} runs with all raw samples?")
        deleted = []
        with Working(f"deleting {len(meant):,} runs") as working:
            for number, run in enumerate(meant, start=1):
                deleted.append(kept.admin.delete_run(results, run))
                working.now(f"deleting runs: {number:,} of {len(meant):,}")
        click.echo(f"deleted {len(meant)} runs, {format_bytes(sum(d.freed_bytes for d in deleted))}")
    return _said([d.trouble for d in deleted if d.trouble])


def _said(trouble: list[str]) -> int:
    """The exit code; says, once, what could not be done."""
    for text in dict.fromkeys(trouble):
        click.echo(f"benchwright: deleted, but still listed elsewhere: {text}; delete it again later", err=True)
    return StoreTrouble.exit_code if trouble else 0


@command.command(epilog="Example: benchwright runs annotate last 'with the new kernel'")
@click.argument("run")
@click.argument("text", required=False)
@where_options
def annotate(run: str, text: str | None, base: str | None, store: str | None) -> None:
    """Attach TEXT to RUN; without TEXT, remove the annotation."""
    with open_results(base, store) as results:
        name = kept.admin.annotate_run(results, run, text or None)
    click.echo(f"{name}: {text or 'annotation removed'}")
