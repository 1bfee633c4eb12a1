"""`benchwright diff-env`."""

from __future__ import annotations

import json

import click
import msgspec

from benchwright.cli.where import open_results, where_options
from benchwright.cli.working import Working


@click.command(epilog="Example: benchwright diff-env train.2026-11-14 last")
@click.argument("control")
@click.argument("treatment", default="last")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@where_options
def command(control: str, treatment: str, as_json: bool, base: str | None, store: str | None) -> None:
    """Show how the machine, the settings and the package versions of two runs differ."""
    from benchwright.analysis.comparison.differences import differences

    with Working("reading the runs"), open_results(base, store) as results:
        found = differences(results.run(control), results.run(treatment))
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(found), indent=1))
        return
    for difference in found:
        click.echo(f"{difference.what}: {difference.control} → {difference.treatment}")
    if not found:
        click.echo("no differences")
