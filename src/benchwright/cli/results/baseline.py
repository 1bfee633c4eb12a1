"""`benchwright baseline`."""

from __future__ import annotations

import click

from benchwright.cli.answer import answer, in_json, json_option
from benchwright.cli.store_options import open_results, where_options
from benchwright.core.errors import InvalidInput, StoreTrouble


@click.group(epilog="Example: benchwright baseline set main last")
def command() -> None:
    """Name runs to compare with."""


@command.command("set", epilog="Example: benchwright baseline set main last")
@click.argument("name")
@click.argument("run", default="last")
@where_options
def set_(name: str, run: str, base: str | None, store: str | None) -> int:
    """Name RUN, in which something was measured, as baseline NAME."""
    with open_results(base, store) as results:
        measured = results.run(run)
        if not any(result.counted for result in measured.results):
            remedy = f"name another run; why: benchwright show {measured.id}"
            raise InvalidInput("nothing was measured in it", where=measured.id, remedy=remedy)
        found = results.set_baseline(name, run)
        click.echo(f"{name}: {found.id}")
        try:
            results.share_baseline(name, found)
        except StoreTrouble as error:
            click.echo(f"benchwright: {name} is set here, but not in the store: {error}", err=True)
            return error.exit_code
    return 0


@command.command(epilog="Example: benchwright baseline remove main")
@click.argument("name")
@where_options
def remove(name: str, base: str | None, store: str | None) -> int:
    """Remove the name; the run stays."""
    with open_results(base, store) as results:
        try:
            results.remove_baseline(name)
        except StoreTrouble as error:
            click.echo(f"benchwright: {name} is removed here, but not from the store: {error}", err=True)
            return error.exit_code
    click.echo(f"removed: {name}")
    return 0


@command.command("list", epilog="Example: benchwright baseline list --json")
@json_option("Print as JSON.")
@where_options
def list_(base: str | None, store: str | None) -> None:
    """List the baselines."""
    with open_results(base, store) as results:
        meant = results.baselines()
        called = results.called(meant.values())
        known = {name: called.get(uid, uid) for name, uid in meant.items()}
    answer(lambda: known, lambda: "\n".join(f"{name}: {run}" for name, run in sorted(known.items())))
    if not known and not in_json():
        click.echo("no baselines yet; set one with: benchwright baseline set NAME RUN", err=True)
