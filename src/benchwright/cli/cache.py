"""`benchwright cache`: list, verify, clean; of builds also stats, delete and location."""

from __future__ import annotations

import os
from pathlib import Path

import click

from benchwright.artifacts.builds import BuildInventory
from benchwright.artifacts.inventory import (
    ArtifactInventory,
    CacheEntry,
    CacheFilter,
    Inventory,
    oldest_first,
    refuse_unknown,
    too_many,
)
from benchwright.cli.answer import answer, in_json, json_option
from benchwright.cli.models.cached_builds import (
    day,
    delete,
    dry_run_option,
    label_option,
    location,
    removed,
    runtime_option,
    stats,
    yes_option,
)
from benchwright.cli.options import label_pairs, options
from benchwright.cli.results.runs import ListByDefault
from benchwright.cli.spinner import Working
from benchwright.cli.terminal import terminal_width
from benchwright.core.errors import InvalidInput
from benchwright.core.quantities import format_bytes, parse_duration, parse_size
from benchwright.report.document import Cell, Column, Field, table_of, word
from benchwright.report.text.layout import left_out_words, table_lines
from benchwright.report.text.numbers import counted
from benchwright.report.text.one_line import one_line
from benchwright.runs.base_folder import BaseFolder

_folder_option = click.option(
    "--model-cache", metavar="DIR", help="Another cache than the artifacts and builds of the base folder."
)


@click.group(cls=ListByDefault, epilog="Example: benchwright cache clean --keep 30d --max-size 20GB")
def command() -> None:
    """List (the default), verify, clean and delete cached artifacts and builds.

    Artifacts are the files specifications name; builds are what runtimes made of models; revisions are the commits and package
    versions that were built to be compared. All come back when they are needed.
    """


for _of_builds in (stats, delete, location):
    command.add_command(_of_builds)


@command.command("list", epilog="Example: benchwright cache list --label author=google --runtime onnxruntime")
@click.argument("names", nargs=-1)
@label_option
@runtime_option
@click.option("--unused", metavar="TIME", help="Only what was not used for this long, such as 30d.")
@json_option("Print as JSON.")
@_folder_option
@options("base")
def list_(
    names: tuple[str, ...],
    labels: tuple[str, ...],
    runtimes: tuple[str, ...],
    unused: str | None,
    model_cache: str | None,
    base: str | None,
) -> None:
    """List what the caches hold, or what of it has these NAMES (globs work), the largest first."""
    with Working("listing the caches"):
        wanted = _filter(labels, runtimes, names=names, unused=unused)
        every = [entry for inventory in _inventories(base, model_cache) for entry in inventory.entries()]
    found = [entry for entry in every if wanted(entry)]
    found.sort(key=lambda entry: (-entry.size_bytes, entry.name))
    answer(lambda: found, lambda: _table(found) if found or not every else "nothing in the caches matches")


@command.command(epilog="Example: benchwright cache verify")
@json_option("Print as JSON.")
@_folder_option
@options("base")
def verify(model_cache: str | None, base: str | None) -> int:
    """Read every cached file and check its checksum. Exit code: 0 intact, 1 damaged.

    Damaged files are fetched, unpacked or built again when they are next needed.
    """
    problems, count, size = [], 0, 0
    with Working("reading the caches") as working:
        for inventory in _inventories(base, model_cache):
            for entry in inventory.entries():

                def progress(done: int, entry: CacheEntry = entry) -> None:
                    if done % (1 << 26) == 0:
                        working.now(f"verifying {entry.name}: {format_bytes(done)} of {format_bytes(entry.size_bytes)}")

                working.now(f"verifying {entry.name}")
                problem = inventory.verify(entry, progress)
                problems += [problem] if problem else []
                count, size = count + 1, size + entry.size_bytes
    for problem in problems if not in_json() else ():
        click.echo(f"benchwright: {problem}", err=True)
    answer(
        lambda: {"entries": count, "size_bytes": size, "problems": problems},
        lambda: f"{count - len(problems)} of {count} intact, {format_bytes(size)}",
    )
    return 1 if problems else 0


@command.command(epilog="Example: benchwright cache clean --keep 30d --max-size 20GB --yes")
@click.argument("names", nargs=-1)
@click.option("--keep", metavar="TIME", help="Remove what was not used for this long, such as 30d.")
@click.option("--max-size", metavar="SIZE", help="Remove what was used longest ago until the rest fits, such as 20GB.")
@click.option("--all", "everything", is_flag=True, help="Remove everything.")
@label_option
@runtime_option
@dry_run_option
@yes_option
@_folder_option
@options("base")
def clean(
    names: tuple[str, ...],
    keep: str | None,
    max_size: str | None,
    everything: bool,
    labels: tuple[str, ...],
    runtimes: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    model_cache: str | None,
    base: str | None,
) -> int:
    """Remove cached files by NAME, glob or id, by age or by size; labels stay, and whatever a running benchwright uses.

    Exit code: 1 if something in use was kept.
    """
    limited = bool(names or keep or max_size)
    if not (limited or everything or labels or runtimes):
        remedy = "name what to remove, or give --keep 30d, --max-size 20GB or --all"
        raise InvalidInput("no limit given", where="clean", remedy=remedy)
    with Working("listing the caches"):
        found = [(entry, inventory) for inventory in _inventories(base, model_cache) for entry in inventory.entries()]
    owners = {entry.path: inventory for entry, inventory in found if entry.kind != "labels"}
    within = _filter(labels, runtimes)
    entries = [entry for entry, _ in found if entry.path in owners and within(entry)]
    refuse_unknown(entries, names)
    picked = {e.path for e in entries if names and CacheFilter(names=names)(e)}
    if keep is not None:
        picked |= {e.path for e in entries if _filter((), (), unused=keep)(e)}
    if max_size is not None:
        rest = [entry for entry in entries if entry.path not in picked]
        picked |= {e.path for e in too_many(rest, parse_size(max_size, where="--max-size"))}
    if everything or not limited:
        picked |= {e.path for e in entries}
    meant = oldest_first([entry for entry in entries if entry.path in picked])
    return removed(meant, lambda entry: owners[entry.path].remove(entry), dry_run=dry_run, yes=yes)


def _filter(
    labels: tuple[str, ...], runtimes: tuple[str, ...], *, names: tuple[str, ...] = (), unused: str | None = None
) -> CacheFilter:
    from benchwright.kinds.runtime_names import runtimes_named

    return CacheFilter(
        names=names,
        labels=label_pairs(labels),
        runtimes=runtimes_named(runtimes, None) if runtimes else (),
        unused_s=None if unused is None else parse_duration(unused, where="TIME"),
    )


def _inventories(base: str | None, model_cache: str | None) -> list[Inventory]:
    from benchwright.regress.build_inventory import RevisionInventory

    if model_cache is not None:
        if not Path(model_cache).is_dir():
            raise InvalidInput("there is no such folder", where=f"--model-cache {model_cache}")
        return [ArtifactInventory(Path(model_cache).absolute())]
    folder = BaseFolder.choose(base, os.environ)
    return [ArtifactInventory(folder.artifacts), BuildInventory(folder.builds), RevisionInventory(folder.revisions)]


def _table(entries: list[CacheEntry]) -> str:
    if not entries:
        return "the caches are empty"
    fields: list[Field[CacheEntry]] = [
        Field(Column("name"), lambda entry: word(one_line(entry.name))),
        Field(Column("kind", drop_priority=2), lambda entry: word(entry.kind)),
        Field(Column("size", right=True), lambda entry: Cell(format_bytes(entry.size_bytes))),
        Field(
            Column("runtime"), lambda entry: word(" ".join(filter(None, (entry.runtime, entry.precision, entry.way))))
        ),
        Field(Column("made", drop_priority=6), lambda entry: Cell("" if entry.made is None else day(entry.made))),
        Field(Column("last used", drop_priority=1), lambda entry: Cell(day(entry.last_used))),
        Field(Column("labels", drop_priority=3), lambda entry: Cell(one_line(_labels(entry)))),
        Field(Column("id", drop_priority=4), lambda entry: Cell(one_line(entry.id[:12]))),
        Field(Column("from", drop_priority=5), lambda entry: Cell(one_line(entry.location))),
    ]
    table, width = table_of(fields, entries), terminal_width()
    total = f"{counted(len(entries), 'entry', 'entries')}, {format_bytes(sum(entry.size_bytes for entry in entries))}"
    return "\n".join([*table_lines(table, width), *left_out_words([table], width, "--json"), f" {total}"])


def _labels(entry: CacheEntry) -> str:
    return " ".join(f"{key}={value}" for key, value in entry.labels.items())
