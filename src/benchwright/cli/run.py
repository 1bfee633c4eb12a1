"""`benchwright run`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from benchwright.cli.suites.batch_sizes import SEARCH, save_scaling, search_batches
from benchwright.cli.targets import TargetCommand, option, request_of, target_options
from benchwright.cli.terminal import coloured, forget_stdout, terminal_width
from benchwright.core.errors import InvalidInput
from benchwright.core.run import Run

if TYPE_CHECKING:
    from benchwright.report.base import Reporter

_SAME_RUN = (
    "resume",
    "anyway",
    "base",
    "targets",
    "show_output",
    "as_json",
    "quiet",
    "verbose",
    "dash",
    "store",
    "no_store",
)
_EXAMPLES = """\b
Examples:
  benchwright run --repeat 6 -- python train.py --epochs 1
  benchwright run --metric 'speed=Speed: ([\\d.]+) samples/sec' -- python train.py
  benchwright run --repeat 8 -c 'python old.py' -c 'python new.py'
  benchwright run tasks.cfg --task resnet50 --num-gpus 0
  benchwright run bert.py --runtime torch-eager,onnxruntime --param batch_size=1,8
  benchwright run suite.yaml --select vision --repeat 6
"""


@click.command(cls=TargetCommand, epilog=_EXAMPLES)
@target_options
@option(
    "Results",
    "--run-name",
    "--run_name",
    "run_name",
    metavar="NAME",
    help="What to call the run; {time} stands for the time.",
)
@option(
    "Results",
    "--resume",
    is_flag=False,
    flag_value="newest",
    metavar="[=RUN]",
    help="Finish an interrupted run and repeat nothing that completed; without a value the newest of the same target.",
)
@option(
    "Results",
    "--anyway",
    is_flag=True,
    help="With --resume: go on even if the code, the environment or packages have changed, and mark the results.",
)
@option(
    "Results", "--store", metavar="URL", help="The store.  [default: $BENCHWRIGHT_STORE, else store.db in the base]"
)
@option("Results", "--no-store", is_flag=True, help="Do not put the run into the store.")
@option("Results", "--show-output", is_flag=True, help="Show what the programs print, on stderr.")
@option("Results", "--json", "as_json", is_flag=True, help="Print the results as JSON.")
@option(
    "Results",
    "--dash",
    type=click.Choice(["short", "long", "no"]),
    default="short",
    help="Progress: one line, a line for each process, or none.  [default: short]",
)
@option("Results", "-q", "--quiet", is_flag=True, help="No progress.")
@option("Results", "-v", "--verbose", is_flag=True, help="More progress.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    run_name: str | None,
    resume: str | None,
    anyway: bool,
    store: str | None,
    no_store: bool,
    show_output: bool,
    as_json: bool,
    dash: str,
    quiet: bool,
    verbose: bool,
    base: str | None,
    **values: Any,
) -> int:
    """Measure TARGETS (suites, task files, scripts, models) or a command, and keep the results in a run folder.

    Results go to stdout, progress and advice to stderr. Exit code: 0 all went well, 1 something measured failed, 2 the
    input is wrong, 3 nothing could be measured, 130 interrupted (resumable).
    """
    from benchwright.app.after_run import exit_code, keep_in_store, write_driver_files
    from benchwright.app.resolve import resolve
    from benchwright.app.results import store_url
    from benchwright.app.run import run as make_run
    from benchwright.cli.progress import Progress
    from benchwright.runs.base_folder import BaseFolder

    resume, values["targets"] = _untangle_resume(resume, values["targets"])
    _check_placeholders(run_name or "")
    if anyway and resume is None:
        raise InvalidInput("only a run that is resumed can go on anyway", where="--anyway", remedy="add --resume")
    folder = BaseFolder.choose(base, os.environ)
    if not no_store:
        store_url(store, folder, os.environ)  # refused now, not after hours of measuring
    request = msgspec.structs.replace(request_of(ctx, values, folder.path), echo=show_output)
    quiet = quiet or as_json or dash == "no"
    if values["size"] == SEARCH and resume is None:
        with Progress(quiet=quiet, verbose=verbose) as progress:
            return search_batches(request, folder, progress, as_json=as_json)
    resolved = resolve(request, allow_nothing=resume is not None)
    if not resolved.benchmarks:
        _check_nothing_is_changed(ctx)
    if request.models.trust:
        from benchwright.kinds.models.model_file import trusted_code

        for warning in trusted_code(resolved.benchmarks):
            click.echo(f"benchwright: {warning}", err=True)
    with Progress(quiet=quiet, verbose=verbose, long=dash == "long") as progress:
        run = make_run(
            resolved, folder, progress, name=run_name, resume=resume, labels=request.options.labels, anyway=anyway
        )
    for problem in write_driver_files(run, Path.cwd()):
        click.echo(f"benchwright: {problem}", err=True)
    code = exit_code(run)
    if said := save_scaling(run, resolved.settings):
        click.echo(f"benchwright: {said}", err=True)
    try:
        click.echo(_report(run, as_json, base, store, no_store), nl=False)
    except BrokenPipeError:
        forget_stdout()  # nobody reads the report (`| head`); how the run went is told by the exit code all the same
    if not no_store:
        for problem in keep_in_store(run, base, store):
            click.echo(f"benchwright: {problem}", err=True)
    return code


def _untangle_resume(resume: str | None, targets: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """`--resume tasks.cfg` means resume the newest run of tasks.cfg: a file is no run folder."""
    if resume is not None and Path(resume).is_file():
        return "newest", (resume, *targets)
    return resume, targets


def _check_placeholders(run_name: str) -> None:
    for unknown in re.findall(r"\{\w*\}", run_name.replace("{time}", "")):
        raise InvalidInput(
            f"{unknown} stands for nothing in the name of a run", where="--run-name", remedy="write {time}"
        )


def _check_nothing_is_changed(ctx: click.Context) -> None:
    """A run that is resumed without its target goes on as it began: InvalidInput for an option that says otherwise."""
    for parameter in ctx.command.params:
        given = ctx.get_parameter_source(parameter.name or "") is click.core.ParameterSource.COMMANDLINE
        if given and parameter.name not in _SAME_RUN:
            raise InvalidInput(
                f"{parameter.opts[0]} changes nothing in a run that is resumed without its target",
                where="--resume",
                remedy=f"leave {parameter.opts[0]} out, or name the target again to have it compared",
            )


def _report(run: Run, as_json: bool, base: str | None, store: str | None, no_store: bool) -> str:
    from benchwright.app.after_run import report_of
    from benchwright.report.run_json import JsonReporter
    from benchwright.report.screen import ScreenReporter

    reporter: Reporter = JsonReporter() if as_json else ScreenReporter()
    peaks = None
    if not no_store:
        from benchwright.app.peaks import peaks_of_base

        peaks = peaks_of_base(run, base, store)
    text = reporter.render(report_of(run, width=terminal_width(), peaks=peaks))
    return text if as_json else coloured(text)
