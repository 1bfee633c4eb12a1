"""`benchwright doctor`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from benchwright import runner
from benchwright.cli.spinner import Working
from benchwright.cli.terminal import terminal_width
from benchwright.doctor import plugins
from benchwright.doctor.report import checkup_json, checkup_text
from benchwright.executors.observer import Observer
from benchwright.runs.base_folder import BaseFolder

if TYPE_CHECKING:
    from benchwright.core.job import Job
    from benchwright.core.machine import Machine
    from benchwright.core.run import Plan, Run
    from benchwright.options.table import Options

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
    from benchwright.doctor.check import check
    from benchwright.executors.local import LocalExecutor

    folder = BaseFolder.choose(base, os.environ)
    with LocalExecutor() as executor, Working("reading the machine", quiet=as_json) as working:
        observer = None if as_json else _Noise(working)

        def measure(options: Options, base: BaseFolder) -> Run:
            return runner.run.run(runner.run.RunOrder(options=replace(options, no_store=True), base=base), observer)

        checkup = check(
            folder, executor=executor, measure=None if quick else measure, registries=plugins.all_registries()
        )
    if as_json:
        click.echo(checkup_json(checkup), nl=False)
    else:
        terminal = sys.stdout.isatty()
        width = min(terminal_width(), 110)
        colour = terminal and "NO_COLOR" not in os.environ
        click.echo(checkup_text(checkup, width=width, colour=colour), nl=False, color=colour)
    return 1 if checkup.errors else 0


class _Noise(Observer):
    """How far the measurement of the noise is. Without a terminal, one line at its beginning."""

    def __init__(self, working: Working) -> None:
        self.working = working

    def on_run(self, folder: Path, plan: Plan, machine: Machine) -> None:
        if not sys.stderr.isatty():
            self.working.echo(f"measuring the noise: {len(plan.launches)} launches of a small program…", err=True)

    def on_launch(self, number: int, total: int, jobs: Sequence[Job]) -> None:
        self.working.now(f"measuring the noise: launch {number} of {total}")
