"""`benchwright compare --env`."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click
import msgspec

from benchwright.cli.where import open_results
from benchwright.cli.working import Working
from benchwright.core.errors import InvalidInput


def show_differences(runs: Sequence[str], base: str | None, store: str | None, *, as_json: bool) -> None:
    """How the machine, the settings and the package versions of two runs differ; of one run, to the last."""
    if len(runs) not in (1, 2):
        raise InvalidInput("compares the environments of two runs", where="--env", remedy="name one or two runs")
    control, treatment = (*runs, "last")[:2]
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
