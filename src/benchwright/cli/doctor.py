"""`benchwright doctor`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchwright.cli.terminal import terminal_width
from benchwright.executors.observer import Observer

if TYPE_CHECKING:
    from benchwright.core.inputs.request import Request
    from benchwright.core.job import Job
    from benchwright.core.machine import Machine
    from benchwright.core.run import Plan, Run

_EXAMPLES = """\b
Examples:
  benchwright doctor
  benchwright doctor --quick
  benchwright doctor --json > machine.json || echo "do not measure here now"
"""


@click.command(epilog=_EXAMPLES)
@click.option("--quick", is_flag=True, help="Skip the noise measurement.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--base", help="Where results are kept.")
def command(quick: bool, as_json: bool, base: str | None) -> int:
    """Check this machine: hardware, runtimes, samplers and noise, with advice.

    To measure the noise, one small program is launched 14 times as if it were two. Nothing is kept. Exit code: 0 fine, or
    only warnings; 1 measurements taken now cannot be trusted.
    """
    from benchwright.app.plugins import all_registries
    from benchwright.app.run import RunOrder, run
    from benchwright.doctor.check import check
    from benchwright.doctor.report import checkup_json, checkup_text
    from benchwright.executors.local import LocalExecutor
    from benchwright.runs.base_folder import BaseFolder

    folder = BaseFolder.choose(base, os.environ)
    with LocalExecutor() as executor, _Progress(quiet=as_json) as progress:

        def measure(request: Request, base: BaseFolder) -> Run:
            return run(RunOrder(request=request, base=base, keep=False), progress)

        checkup = check(folder, executor=executor, measure=None if quick else measure, registries=all_registries())
    if as_json:
        click.echo(checkup_json(checkup), nl=False)
    else:
        terminal = sys.stdout.isatty()
        width = min(terminal_width(), 110)
        colour = terminal and "NO_COLOR" not in os.environ
        click.echo(checkup_text(checkup, width=width, colour=colour), nl=False, color=colour)
    return 1 if checkup.errors else 0


class _Progress(Observer):
    """One line on stderr, redrawn on a terminal."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.live = sys.stderr.isatty()

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.live and not self.quiet:
            click.echo("\r\x1b[K", nl=False, err=True)

    def on_run(self, folder: Path, plan: Plan, machine: Machine) -> None:
        if not self.quiet and not self.live:
            click.echo(f"measuring the noise: {len(plan.launches)} launches of a small program…", err=True)

    def on_launch(self, number: int, total: int, jobs: Sequence[Job]) -> None:
        if not self.quiet and self.live:
            click.echo(f"\r\x1b[Kmeasuring the noise: launch {number} of {total}", nl=False, err=True)
