"""`benchwright cache stats`, `delete` and `location`: the builds of models, by their names."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import click
import msgspec

from benchwright.artifacts.builds import BuildInventory
from benchwright.artifacts.inventory import CacheEntry, CacheFilter, is_called, refuse_unknown
from benchwright.cli.answer import answer, json_option
from benchwright.cli.options import label_pairs, options
from benchwright.cli.spinner import Working
from benchwright.cli.terminal import ask, terminal_width
from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.quantities import format_bytes, format_duration
from benchwright.report.document import Cell, Column, Field, table_of, word
from benchwright.report.text.layout import table_lines
from benchwright.report.text.numbers import format_value
from benchwright.runs.base_folder import BaseFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchwright.report.document import ReportTable
    from benchwright.runs.results_by_build import BuildResult

_OF_A_MODEL = ("build", "labels")
_WITHOUT_RUNTIME = {"labels": "without a build", "compiled": "torch-compile, of all models"}
label_option = click.option(
    "--label", "labels", multiple=True, metavar="KEY=VALUE", help="Only models with this label. Repeatable."
)
runtime_option = click.option(
    "--runtime", "runtimes", multiple=True, metavar="NAME", help="Only builds for this runtime. Repeatable."
)
yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Only show what would be removed.")


@click.command(epilog="Example: benchwright cache stats bert_google_8c1f02aa")
@click.argument("name", required=False)
@json_option("Print as JSON.")
@options("base")
def stats(name: str | None, base: str | None) -> None:
    """Show what is known of the build NAME: labels, steps, files, results. Without a name: how much each runtime takes."""
    inventory = _builds(base)
    with Working("reading the builds"):
        entries = inventory.entries()
        if name is None:
            totals = _totals([entry for entry in entries if entry.kind in (*_OF_A_MODEL, "compiled")])
            answer(lambda: totals, lambda: _totals_text(totals))
        else:
            named = _called([entry for entry in entries if entry.kind in _OF_A_MODEL], name)
            folder = BaseFolder.choose(base, os.environ)
            answer(lambda: _bodies(inventory, named, folder), lambda: _text(inventory, named, folder))


@click.command(epilog="Example: benchwright cache delete 'bert_*' --runtime onnxruntime --yes")
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every build.")
@label_option
@runtime_option
@dry_run_option
@yes_option
@options("base")
def delete(
    names: tuple[str, ...],
    everything: bool,
    labels: tuple[str, ...],
    runtimes: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    base: str | None,
) -> int:
    """Delete builds of models by NAME or glob, with their labels. Their results stay: see benchwright runs delete.

    Exit code: 1 if something in use was kept.
    """
    from benchwright.kinds.runtime_names import runtimes_named

    if not (names or everything or labels or runtimes):
        raise InvalidInput(
            "nothing was named", where="delete", remedy="name builds, or give --label, --runtime or --all"
        )
    inventory = _builds(base)
    with Working("listing the builds"):
        entries = [entry for entry in inventory.entries() if entry.kind in (*_OF_A_MODEL, "compiled", "searches")]
    refuse_unknown(entries, names)
    wanted = CacheFilter(names=names, labels=label_pairs(labels), runtimes=runtimes_named(runtimes, None))
    meant = [entry for entry in entries if wanted(entry)]
    return removed(meant, inventory.remove, dry_run=dry_run, yes=yes, then=lambda e: inventory.forget_labels(e.name))


@click.command(epilog="Example: ls $(benchwright cache location)")
@options("base")
def location(base: str | None) -> None:
    """Print the folder that builds, labels and results are kept in."""
    click.echo(str(_builds(base).folder.parent))


def removed(
    meant: Sequence[CacheEntry],
    remove: Callable[[CacheEntry], bool],
    *,
    dry_run: bool,
    yes: bool,
    then: Callable[[CacheEntry], None] = lambda entry: None,
) -> int:
    """Removes them, after a yes; returns the exit code."""
    if not meant:
        click.echo("nothing to remove")
        return 0
    for entry in meant:
        click.echo(f"{'would remove' if dry_run else 'to remove'}: {words(entry)}")
    if dry_run:
        return 0
    if not yes:
        ask(f"Remove these {len(meant)}, {format_bytes(sum(entry.size_bytes for entry in meant))}?")
    with Working("removing"):
        kept = [entry for entry in meant if not remove(entry)]
        for entry in meant:
            if entry not in kept:
                then(entry)
    for entry in kept:
        click.echo(f"benchwright: {entry.name} is in use and was kept", err=True)
    freed = sum(entry.size_bytes for entry in meant if entry not in kept)
    click.echo(f"removed {len(meant) - len(kept)}, {format_bytes(freed)}")
    return 1 if kept else 0


def words(entry: CacheEntry) -> str:
    what = " ".join(filter(None, (entry.kind, entry.runtime, entry.precision, entry.way)))
    return f"{entry.name} ({what}, {format_bytes(entry.size_bytes)}, last used {day(entry.last_used)})"


def day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(seconds))


def _builds(base: str | None) -> BuildInventory:
    return BuildInventory(BaseFolder.choose(base, os.environ).builds)


def _called(entries: Sequence[CacheEntry], name: str) -> list[CacheEntry]:
    if found := [entry for entry in entries if is_called(entry, name)]:
        return found
    near = did_you_mean(name, [entry.name for entry in entries])
    raise InvalidInput(f"no build is called '{name}'", remedy=near or "see benchwright cache list")


def _by_name(entries: Sequence[CacheEntry]) -> dict[str, list[CacheEntry]]:
    return {name: [e for e in entries if e.name == name] for name in dict.fromkeys(e.name for e in entries)}


def _results(folder: BaseFolder, name: str) -> list[BuildResult]:
    from benchwright.runs.results_by_build import results_of_build  # what it imports costs more than the command

    return results_of_build(folder, name)


def _bodies(inventory: BuildInventory, entries: Sequence[CacheEntry], folder: BaseFolder) -> object:
    """A list, unless there is only one."""
    bodies = []
    for name, same in _by_name(entries).items():
        builds = [msgspec.to_builtins(entry) | inventory.manifest(entry) for entry in same if entry.kind == "build"]
        results = _results(folder, name)
        bodies.append({"name": name, "labels": _labels(same), "builds": builds, "results": results})
    return bodies[0] if len(bodies) == 1 else bodies


def _text(inventory: BuildInventory, entries: Sequence[CacheEntry], folder: BaseFolder) -> str:
    lines: list[str] = []
    for name, same in _by_name(entries).items():
        lines += [f" {name}", *(f"   {key}: {value}" for key, value in _labels(same).items())]
        for entry in same:
            lines += (
                _build_lines(entry, inventory.manifest(entry)) if entry.kind == "build" else ["   no build is kept"]
            )
        lines += _result_lines(_results(folder, name))
    return "\n".join(lines)


def _labels(entries: Sequence[CacheEntry]) -> dict[str, str]:
    return {key: value for entry in entries for key, value in entry.labels.items()}


def _build_lines(entry: CacheEntry, facts: dict[str, object]) -> list[str]:
    made = f", made {day(entry.made)}" if entry.made is not None else ""
    what = " in ".join(filter(None, (entry.runtime, entry.precision))) or "build"
    what += f" ({entry.way})" if entry.way else ""
    lines = [f"   {what}: {format_bytes(entry.size_bytes)}{made}, last used {day(entry.last_used)}"]
    steps, parts, files = facts.get("steps"), facts.get("parts"), facts.get("files")
    if isinstance(steps, list) and steps:
        lines.append("     " + ", ".join(f"{step['step']} {format_duration(step['seconds'])}" for step in steps))
    versions = parts.get("versions") if isinstance(parts, dict) else None
    if isinstance(versions, dict):
        lines.append("     with " + ", ".join(f"{package} {version}" for package, version in versions.items()))
    count = f"{len(files)} files in " if isinstance(files, dict) else ""
    return [*lines, f"     {count}{entry.path}"]


def _result_lines(results: Sequence[BuildResult]) -> list[str]:
    if not results:
        return ["   no results"]
    return [f"  {line}" for line in table_lines(_result_table(results), terminal_width() - 2)]


def _result_table(results: Sequence[BuildResult]) -> ReportTable:
    fields: list[Field[BuildResult]] = [
        Field(Column("runtime"), lambda r: word(r.runtime)),
        Field(Column("precision", setting=True), lambda r: word(r.precision)),
        Field(Column("status"), lambda r: word(r.status)),
        Field(
            Column("latency", right=True),
            lambda r: Cell("" if r.latency_s is None else format_value(r.latency_s, "s")),
        ),
        Field(Column("vs eager", right=True), lambda r: Cell("" if r.vs_eager is None else f"{r.vs_eager:.2f}")),
        Field(Column("run", drop_priority=1), lambda r: word(r.run)),
    ]
    return table_of(fields, results)


def _counted(number: object) -> str:
    return f"{number:,}" if number else "–"


def _totals(entries: Sequence[CacheEntry]) -> list[dict[str, object]]:
    groups: dict[str, list[CacheEntry]] = {}
    for entry in entries:
        groups.setdefault(entry.runtime or _WITHOUT_RUNTIME.get(entry.kind, "other"), []).append(entry)
    return [
        {
            "runtime": runtime,
            "builds": sum(entry.kind == "build" for entry in same),
            "models": len({entry.name for entry in same if entry.kind in _OF_A_MODEL}),
            "size_bytes": sum(entry.size_bytes for entry in same),
            "last_used": max(entry.last_used for entry in same),
        }
        for runtime, same in sorted(groups.items(), key=lambda each: -sum(e.size_bytes for e in each[1]))
    ]


def _totals_text(bodies: Sequence[dict[str, object]]) -> str:
    if not bodies:
        return "there are no builds"
    fields: list[Field[dict[str, object]]] = [
        Field(Column("runtime"), lambda body: word(str(body["runtime"]))),
        Field(Column("models", right=True), lambda body: word(_counted(body["models"]))),
        Field(Column("builds", right=True), lambda body: word(_counted(body["builds"]))),
        Field(Column("size", right=True), lambda body: Cell(format_bytes(float(str(body["size_bytes"]))))),
        Field(Column("last used"), lambda body: Cell(day(float(str(body["last_used"]))))),
    ]
    return "\n".join(table_lines(table_of(fields, bodies), terminal_width()))
