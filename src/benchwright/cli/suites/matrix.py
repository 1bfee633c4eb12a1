"""`benchwright matrix`."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

import click
import msgspec

from benchwright import runner
from benchwright.cli.answer import answer, in_json, json_option
from benchwright.cli.options import order_from, target_options
from benchwright.core.errors import InvalidInput
from benchwright.options.table import SUITE
from benchwright.runner.matrix import MatrixObserver

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchwright.core.run import Run
    from benchwright.runner.matrix import MatrixOutcome, MatrixRun

_EXAMPLES = """\b
Examples:
  benchwright matrix suite.yaml --system system.yaml --list
  benchwright matrix suite.yaml --system system.yaml --select resnet50
"""


@click.command(epilog=_EXAMPLES)
@target_options("matrix", applying_to=SUITE)
@click.option("--list", "only_list", is_flag=True, help="Show the runs and their names; run nothing.")
@click.option("--resume", is_flag=True, help="Skip finished runs, and continue unfinished ones.")
@json_option("Print the outcome of each run as JSON.")
@click.pass_context
def command(ctx: click.Context, /, targets: tuple[str, ...], only_list: bool, resume: bool, **values: Any) -> int:
    """Run a suite several times, with the options that `multirun.runs` of the system file lists.

    Each run is one that `run` would make. A run that fails does not end the others. Exit code: 0 success, 1 some failed,
    2 or 3 none could be made, 130 interrupted (resumable).
    """
    from benchwright.kinds.suite.system_file import read_system
    from benchwright.options.variables import value_of

    anyway, quiet = values.pop("anyway"), values["quiet"]
    if anyway and not resume:
        raise InvalidInput("only applies to resumed runs", where="--anyway", remedy="add --resume")
    order = order_from(ctx, values, targets)
    order = msgspec.structs.replace(order, options=msgspec.structs.replace(order.options, anyway=anyway))
    file = values["system"] or value_of("BENCHWRIGHT_SYSTEM", os.environ)
    if file is None:
        raise InvalidInput("no system file is named", where="--system", remedy="name one that has multirun.runs")
    system, multirun = read_system(file)
    runs = runner.matrix.matrix_runs(multirun, system, where=file)
    if only_list:
        answer(lambda: {"runs": [_listed(run) for run in runs]}, lambda: _list(runs))
        return 0
    matrix = runner.matrix.SuiteMatrix(order)

    def make(run: MatrixRun) -> Run:
        with runner.terminal.open_progress(quiet=quiet or in_json()) as progress:
            return matrix.make(run, progress, resume=resume)

    finished = matrix.finished if resume else lambda run: None
    outcomes = runner.matrix.run_matrix(runs, make, finished=finished, observer=_Telling(quiet=quiet))
    answer(lambda: {"runs": [_body(x) for x in outcomes]}, lambda: _table(outcomes))
    return runner.matrix.code_of(outcomes)


class _Telling(MatrixObserver):
    """Says on stderr what goes on."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet

    def on_begin(self, number: int, total: int, run: MatrixRun) -> None:
        if not self.quiet:
            click.echo(f"run {number} of {total}: {run.name}", err=True)

    def on_end(self, number: int, total: int, outcome: MatrixOutcome) -> None:
        if outcome.detail is not None:
            click.echo(f"benchwright: {outcome.run.name}: {outcome.detail}", err=True)


def _listed(run: MatrixRun) -> dict[str, object]:
    return {"name": run.name, "options": run.options}


def _body(outcome: MatrixOutcome) -> dict[str, object]:
    found = {"status": outcome.how.value, "id": outcome.id, "exit_code": outcome.code, "detail": outcome.detail}
    return {**_listed(outcome.run), **found}


def _list(runs: Sequence[MatrixRun]) -> str:
    width = max(len(run.name) for run in runs)
    return "\n".join(f"{run.name:<{width}}  {_options(run)}" for run in runs)


def _table(outcomes: Sequence[MatrixOutcome]) -> str:
    """One line for each run; the reports themselves are shown by `report`."""
    width = max(len(outcome.run.name) for outcome in outcomes)
    lines = [f"{x.run.name:<{width}}  {x.how.value:<7}  {x.id or '-'}" for x in outcomes]
    made = [x.id for x in outcomes if x.id is not None]
    if made:
        lines.append(f"compare them: benchwright report {shlex.join(made)}")
    return "\n".join(lines)


def _options(run: MatrixRun) -> str:
    return " ".join(f"{key}={value}" for key, value in run.options.items())
