"""`benchwright cache`: list, verify, clean."""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from benchwright.cli.options import options
from benchwright.cli.results.runs import ListByDefault
from benchwright.cli.terminal import ask, terminal_width
from benchwright.cli.working import Working
from benchwright.core.errors import InvalidInput
from benchwright.core.numbers.quantities import format_bytes, parse_duration, parse_size

if TYPE_CHECKING:
    from benchwright.artifacts.inventory import CacheEntry, Inventory

_folder_option = click.option(
    "--model-cache", metavar="DIR", help="Another cache than the artifacts and builds of the base folder."
)
_json_option = click.option("--json", "as_json", is_flag=True, help="Print as JSON.")


@click.group(cls=ListByDefault, epilog="Example: benchwright cache clean --keep 30d --max-size 20GB")
def command() -> None:
    """List (the default), verify and clean cached artifacts and builds.

    Artifacts are the files specifications name; builds are what runtimes made of models; revisions are the commits and package
    versions that were built to be compared. All come back when they are needed.
    """


@command.command("list", epilog="Example: benchwright cache list --json")
@_json_option
@_folder_option
@options("base")
def list_(as_json: bool, model_cache: str | None, base: str | None) -> None:
    """List what the caches hold, the largest first."""
    with Working("listing the caches", quiet=as_json):
        found = [entry for inventory in _inventories(base, model_cache) for entry in inventory.entries()]
    found.sort(key=lambda entry: (-entry.size_bytes, entry.name))
    if as_json:
        click.echo(json.dumps([msgspec.to_builtins(entry) for entry in found], indent=1))
        return
    click.echo(_table(found))


@command.command(epilog="Example: benchwright cache verify")
@_json_option
@_folder_option
@options("base")
def verify(as_json: bool, model_cache: str | None, base: str | None) -> int:
    """Read every cached file and check its checksum. Exit code: 0 intact, 1 damaged.

    Damaged files are fetched, unpacked or built again when they are next needed.
    """
    problems, count, size = [], 0, 0
    with Working("reading the caches", quiet=as_json) as working:
        for inventory in _inventories(base, model_cache):
            for entry in inventory.entries():

                def told(done: int, entry: CacheEntry = entry) -> None:
                    if done % (1 << 26) == 0:
                        working.now(f"verifying {entry.name}: {format_bytes(done)} of {format_bytes(entry.size_bytes)}")

                working.now(f"verifying {entry.name}")
                problem = inventory.verify(entry, told)
                problems += [problem] if problem else []
                count, size = count + 1, size + entry.size_bytes
    if as_json:
        click.echo(json.dumps({"entries": count, "size_bytes": size, "problems": problems}, indent=1))
    else:
        for problem in problems:
            click.echo(f"benchwright: {problem}", err=True)
        click.echo(f"{count - len(problems)} of {count} intact, {format_bytes(size)}")
    return 1 if problems else 0


@command.command(epilog="Example: benchwright cache clean --keep 30d --max-size 20GB --yes")
@click.argument("names", nargs=-1)
@click.option("--keep", metavar="TIME", help="Remove what was not used for this long, such as 30d.")
@click.option("--max-size", metavar="SIZE", help="Remove what was used longest ago until the rest fits, such as 20GB.")
@click.option("--all", "everything", is_flag=True, help="Remove everything.")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@_folder_option
@options("base")
def clean(
    names: tuple[str, ...],
    keep: str | None,
    max_size: str | None,
    everything: bool,
    dry_run: bool,
    yes: bool,
    model_cache: str | None,
    base: str | None,
) -> int:
    """Remove cached files by NAME or id, by age or by size; whatever a running benchwright uses stays.

    Exit code: 1 if something in use was kept.
    """
    from benchwright.artifacts.inventory import chosen

    if not (names or keep or max_size or everything):
        remedy = "name what to remove, or give --keep 30d, --max-size 20GB or --all"
        raise InvalidInput("no limit given", where="clean", remedy=remedy)
    with Working("listing the caches"):
        found = [(entry, inventory) for inventory in _inventories(base, model_cache) for entry in inventory.entries()]
    owners = {entry.path: inventory for entry, inventory in found}
    meant = chosen(
        [entry for entry, _ in found],
        names,
        keep_s=-math.inf if everything else None if keep is None else parse_duration(keep, where="--keep"),
        max_bytes=None if max_size is None else parse_size(max_size, where="--max-size"),
    )
    if not meant:
        click.echo("nothing to remove")
        return 0
    for entry in meant:
        click.echo(f"{'would remove' if dry_run else 'to remove'}: {_words(entry)}")
    if dry_run:
        return 0
    if not yes:
        ask(f"Remove these {len(meant)}, {format_bytes(sum(entry.size_bytes for entry in meant))}?")
    with Working("removing"):
        kept = [entry for entry in meant if not owners[entry.path].remove(entry)]
    for entry in kept:
        click.echo(f"benchwright: {entry.name} is in use and was kept", err=True)
    freed = sum(entry.size_bytes for entry in meant if entry not in kept)
    click.echo(f"removed {len(meant) - len(kept)}, {format_bytes(freed)}")
    return 1 if kept else 0


def _inventories(base: str | None, model_cache: str | None) -> list[Inventory]:
    from benchwright.artifacts.inventory import ArtifactInventory, BuildInventory
    from benchwright.regress.building.inventory import RevisionInventory
    from benchwright.runs.base_folder import BaseFolder

    if model_cache is not None:
        if not Path(model_cache).is_dir():
            raise InvalidInput("there is no such folder", where=f"--model-cache {model_cache}")
        return [ArtifactInventory(Path(model_cache).absolute())]
    folder = BaseFolder.choose(base, os.environ)
    return [ArtifactInventory(folder.artifacts), BuildInventory(folder.builds), RevisionInventory(folder.revisions)]


def _table(entries: list[CacheEntry]) -> str:
    from benchwright.report.document import Cell, Column, Field, table_of, word
    from benchwright.report.text.layout import left_out_words, table_lines
    from benchwright.report.text.numbers import counted
    from benchwright.report.text.one_line import one_line

    if not entries:
        return "the caches are empty"
    fields: list[Field[CacheEntry]] = [
        Field(Column("name"), lambda entry: word(one_line(entry.name))),
        Field(Column("kind"), lambda entry: word(entry.kind)),
        Field(Column("size", right=True), lambda entry: Cell(format_bytes(entry.size_bytes))),
        Field(Column("last used", spare=1), lambda entry: Cell(_day(entry.last_used))),
        Field(Column("id", spare=2), lambda entry: Cell(one_line(entry.id[:12]))),
        Field(Column("from", spare=3), lambda entry: Cell(one_line(entry.location))),
    ]
    table, width = table_of(fields, entries), terminal_width()
    total = f"{counted(len(entries), 'entry', 'entries')}, {format_bytes(sum(entry.size_bytes for entry in entries))}"
    return "\n".join([*table_lines(table, width), *left_out_words([table], width, "--json"), f" {total}"])


def _words(entry: CacheEntry) -> str:
    return f"{entry.name} ({entry.kind}, {format_bytes(entry.size_bytes)}, last used {_day(entry.last_used)})"


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(seconds))
