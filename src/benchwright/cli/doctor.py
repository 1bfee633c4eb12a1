"""`benchwright doctor`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from msgspec.structs import replace

from benchwright import runner
from benchwright.cli.answer import in_json, json_option
from benchwright.cli.options import options
from benchwright.cli.results.output import chosen_format, output_option, put_out
from benchwright.cli.spinner import Working
from benchwright.cli.terminal import terminal_width
from benchwright.core.errors import InvalidInput
from benchwright.doctor import plugins
from benchwright.doctor.report import checkup_json, checkup_text
from benchwright.executors.observer import Observer
from benchwright.runs.base_folder import BaseFolder

if TYPE_CHECKING:
    from benchwright.core.job import Job
    from benchwright.core.machine import Machine
    from benchwright.core.run import Plan, Run
    from benchwright.options.table import Options

_FORMATS = ("screen", "html", "json")
_EXAMPLES = """\b
Examples:
  benchwright doctor
  benchwright doctor --quick
  benchwright doctor --json > machine.json || echo "do not measure here now"
  benchwright doctor --on slurm:gpu -o cluster.html
  benchwright doctor --on ssh:n1,n2,n3 --against monday.json
"""


@click.command(epilog=_EXAMPLES)
@click.option("--quick", is_flag=True, help="Skip the noise measurement; with --on, the suite and all-reduce.")
@json_option()
@options(
    "base",
    "nodes",
    "slurm",
    "wait",
    "remote_dir",
    on="Check all nodes of a cluster and compare them: slurm[:PARTITION], slurm:job=ID, ray[:ADDRESS], ssh:HOST,HOST, or ssh for the nodes of --system.",
    system="With --on: system file that names the nodes.  [default: $BENCHWRIGHT_SYSTEM]",
)
@click.option("--suite", metavar="NAME", help="With --on: suite to measure on every node.  [default: system]")
@click.option("--against", metavar="FILE", help="With --on: also compare with an earlier checkup, as --json wrote it.")
@click.option("--format", "format_", type=click.Choice(_FORMATS), help="With --on.  [default: by the file's ending]")
@output_option
@click.pass_context
def command(
    context: click.Context,
    /,
    quick: bool,
    suite: str | None,
    against: str | None,
    format_: str | None,
    output: str | None,
    **values: Any,
) -> int:
    """Check this machine: hardware, runtimes, samplers and noise, with advice. With --on: a cluster, node beside node.

    To measure the noise, one small program is launched 14 times as if it were two. Nothing is kept; of a cluster, only how much
    its nodes differ, for comparisons of runs. Exit code: 0 fine, or
    only warnings; 1 measurements taken now cannot be trusted, or a node is out.
    """
    if values["on"] is None:
        _refuse_without_on(context)
        return _check_this_machine(values["base"], quick=quick)
    chosen = chosen_format("doctor --on", format_, output, known=_FORMATS)
    given = context.get_parameter_source("nodes") is ParameterSource.COMMANDLINE
    asked = runner.requests.options_of({**values, "nodes": values["nodes"] if given else 0})
    return _check_cluster(asked, None if quick else suite or "system", against, chosen, output)


def _refuse_without_on(context: click.Context) -> None:
    """These would be ignored."""
    of_clusters = {"nodes", "slurm", "wait", "remote_dir", "system", "suite", "against", "format_", "output"}
    for name in sorted(of_clusters):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            flag = f"--{name.strip('_').replace('_', '-')}"
            raise InvalidInput(f"{flag} is for clusters", where="doctor", remedy="add --on, or leave it out")


def _check_cluster(asked: Options, suite: str | None, against: str | None, format_: str, output: str | None) -> int:
    base, width = BaseFolder.choose(asked.base, os.environ), min(terminal_width(), 110)
    with Working("reading the nodes") as working:
        text, is_out = runner.node_rounds.cluster_report(
            asked, base, _Rounds(working), suite=suite, against=against, format_=format_, width=width
        )
    put_out(text, format_, output)
    return 1 if is_out else 0


def _check_this_machine(base: str | None, *, quick: bool) -> int:
    from benchwright.doctor.check import check
    from benchwright.executors.local import LocalExecutor

    folder = BaseFolder.choose(base, os.environ)
    with LocalExecutor() as executor, Working("reading the machine") as working:
        observer = None if in_json() else _Noise(working)

        def measure(options: Options, base: BaseFolder) -> Run:
            return runner.run.run(runner.run.RunOrder(options=replace(options, no_store=True), base=base), observer)

        checkup = check(
            folder, executor=executor, measure=None if quick else measure, registries=plugins.all_registries()
        )
    if in_json():
        click.echo(checkup_json(checkup), nl=False)
    else:
        terminal = sys.stdout.isatty()
        width = min(terminal_width(), 110)
        colour = terminal and "NO_COLOR" not in os.environ
        click.echo(checkup_text(checkup, width=width, colour=colour), nl=False, color=colour)
    return 1 if checkup.errors else 0


class _Rounds(Observer):
    """How far the checkup of a cluster is."""

    def __init__(self, working: Working) -> None:
        self.working = working

    def on_step(self, name: str, what: str, log: str | None = None) -> None:
        self.working.now(f"{name}: {what}")

    def on_launch(self, number: int, total: int, jobs: Sequence[Job]) -> None:
        self.working.now(
            f"measuring {jobs[0].benchmark}: round {number} of {total} on {len({j.node for j in jobs})} nodes"
        )

    def on_trouble(self, text: str) -> None:
        self.working.echo(f"benchwright: {text}", err=True)


class _Noise(Observer):
    """How far the measurement of the noise is. Without a terminal, one line at its beginning."""

    def __init__(self, working: Working) -> None:
        self.working = working

    def on_run(self, folder: Path, plan: Plan, machine: Machine) -> None:
        if not sys.stderr.isatty():
            self.working.echo(f"measuring the noise: {len(plan.launches)} launches of a small program…", err=True)

    def on_launch(self, number: int, total: int, jobs: Sequence[Job]) -> None:
        self.working.now(f"measuring the noise: launch {number} of {total}")
