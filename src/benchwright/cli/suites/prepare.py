"""`benchwright prepare`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from benchwright import runner
from benchwright.cli.suites.options import (
    outcome_options,
    show_outcome,
    suite_options,
    suite_targets_of,
)
from benchwright.core.quantities import format_duration

if TYPE_CHECKING:
    from benchwright.kinds.suite.setup.prepare import Preparing

_LAST_LINES = 8


@click.command(epilog="Example: benchwright prepare suite.yaml --select resnet50")
@suite_options
@click.option("--force", is_flag=True, help="Prepare everything again.")
@click.option(
    "--jobs", type=click.IntRange(1), metavar="N", default=1, help="Scripts to run in parallel.  [default: 1]"
)
@click.option(
    "--on", metavar="NAME[:ARG]", default="local", help="Where the scripts run, as in run --on.  [default: local]"
)
@click.option("--show-output", is_flag=True, help="Show what the scripts print, on stderr.")
@outcome_options
def command(force: bool, jobs: int, on: str, show_output: bool, quiet: bool, **values: object) -> int:
    """Download SUITE's data and models by running its prepare scripts, so that `run` needs no network.

    Finished work is skipped, unless a script or its arguments changed. Exit code: 0 success, 1 a script failed, 2 the
    suite is wrong or not installed, 3 a folder cannot be written.
    """
    from benchwright.kinds.suite.setup.prepare import PrepareOptions, prepare

    run = runner.requests.options_of({**values, "on": on, "show_output": show_output})
    targets = suite_targets_of(values)
    with runner.terminal.open_progress(quiet=quiet) as progress:
        done = prepare(targets, PrepareOptions(force=force, jobs=jobs, run=run), progress)
    return show_outcome("benchmarks", done, _text(done), log_lines=0 if show_output else _LAST_LINES)


def _text(done: Sequence[Preparing]) -> str:
    width = max(len(x.name) for x in done)
    words = {"nothing": "nothing to prepare", "reused": "already prepared"}
    return "".join(
        f"{x.name:<{width}}  {words.get(x.status, x.status)}"
        + (f", {format_duration(x.seconds)}" if x.seconds else "")
        + "\n"
        for x in done
    )
