"""`benchwright matrix`."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from benchwright.cli.suites.batch_sizes import save_scaling
from benchwright.cli.targets import TargetCommand, option, request_of, target_options
from benchwright.core.errors import BenchwrightError, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchwright.app.matrix import MatrixOutcome, MatrixRun
    from benchwright.core.run import Run

_EXAMPLES = """\b
Examples:
  benchwright matrix suite.yaml --system system.yaml --list
  benchwright matrix suite.yaml --system system.yaml --select resnet50
"""


@click.command(cls=TargetCommand, epilog=_EXAMPLES)
@target_options
@option("Results", "--list", "only_list", is_flag=True, help="Show the runs and their names; run nothing.")
@option("Results", "--resume", is_flag=True, help="Leave out what is finished, and go on with what is not.")
@option(
    "Results",
    "--anyway",
    is_flag=True,
    help="With --resume: go on even if the code, the environment or packages have changed, and mark the results.",
)
@option(
    "Results", "--store", metavar="URL", help="The store.  [default: $BENCHWRIGHT_STORE, else store.db in the base]"
)
@option("Results", "--no-store", is_flag=True, help="Do not put the runs into the store.")
@option("Results", "--show-output", is_flag=True, help="Show what the programs print, on stderr.")
@option("Results", "--json", "as_json", is_flag=True, help="Print what became of each run as JSON.")
@option("Results", "-q", "--quiet", is_flag=True, help="No progress.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    only_list: bool,
    resume: bool,
    anyway: bool,
    store: str | None,
    no_store: bool,
    show_output: bool,
    as_json: bool,
    quiet: bool,
    base: str | None,
    **values: Any,
) -> int:
    """Run a suite several times, with the options that `multirun.runs` of the system file lists.

    Each run is one that `run` would make. A run that fails does not end the others. Exit code: 0 all went well, 1 some
    did not; 2, 3: none could be made; 130 interrupted (resumable).
    """
    from benchwright.app.after_run import keep_in_store
    from benchwright.app.matrix import MatrixObserver, SuiteMatrix, code_of, matrix_runs, run_matrix
    from benchwright.cli.progress import Progress
    from benchwright.kinds.suite.suites import SYSTEM_VARIABLES
    from benchwright.kinds.suite.system_file import read_system
    from benchwright.runs.base_folder import BaseFolder

    folder = BaseFolder.choose(base, os.environ)
    request = msgspec.structs.replace(request_of(ctx, values, folder.path), echo=show_output)
    file = values["system"] or next((v for name in SYSTEM_VARIABLES if (v := os.environ.get(name))), None)
    if file is None:
        raise InvalidInput("no system file is named", where="--system", remedy="name one that has multirun.runs")
    system, multirun = read_system(file)
    runs = matrix_runs(multirun, system, where=file)
    if only_list:
        click.echo(json.dumps({"runs": [_listed(run) for run in runs]}, indent=1) if as_json else _list(runs))
        return 0
    matrix = SuiteMatrix(request, folder)

    class Telling(MatrixObserver):
        def on_begin(self, number: int, total: int, run: MatrixRun) -> None:
            if not quiet:
                click.echo(f"run {number} of {total}: {run.name}", err=True)

        def on_end(self, number: int, total: int, outcome: MatrixOutcome, result: Run | None) -> None:
            if result is not None:
                for text in [*_saved(result), *([] if no_store else keep_in_store(result, base, store))]:
                    click.echo(f"benchwright: {text}", err=True)
            if outcome.detail is not None:
                click.echo(f"benchwright: {outcome.run.name}: {outcome.detail}", err=True)

    def make(run: MatrixRun) -> Run:
        with Progress(quiet=quiet or as_json) as progress:
            return matrix.make(run, progress, resume=resume, anyway=anyway)

    finished = matrix.finished if resume else lambda run: None
    outcomes = run_matrix(runs, make, finished=finished, observer=Telling())
    click.echo(json.dumps({"runs": [_told(x) for x in outcomes]}, indent=1) if as_json else _table(outcomes))
    return code_of(outcomes)


def _saved(run: Run) -> list[str]:
    """What this run's own options say to keep for the sizing of later ones; a file in the way does not end the others."""
    from benchwright.runs.run_folder import RunFolder

    try:
        said = save_scaling(run, RunFolder(Path(run.folder)).read_plan().settings)
    except (BenchwrightError, OSError) as error:
        return [f"{run.id} is complete, but its batch sizes are not saved: {error}"]
    return [said] if said else []


def _listed(run: MatrixRun) -> dict[str, Any]:
    return {"name": run.name, "options": run.options}


def _told(outcome: MatrixOutcome) -> dict[str, Any]:
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
