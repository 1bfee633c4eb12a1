"""`benchwright find`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from benchwright.cli.model_options import finding_options
from benchwright.cli.option_values import timeout_of, words_of
from benchwright.cli.terminal import coloured, terminal_width
from benchwright.core.errors import InvalidInput

if TYPE_CHECKING:
    from benchwright.core.benchmark import Benchmark
    from benchwright.core.model import Discovery

_EXAMPLES = """\b
Examples:
  benchwright find bert.py
  benchwright find bert.py --param batch_size=1,8 --max-depth 1 --json
"""


def _with_finding_options(function: Any) -> Any:
    for option in reversed(finding_options(click.option)):
        function = option(function)
    return function


@click.command(epilog=_EXAMPLES)
@click.argument("scripts", nargs=-1)
@_with_finding_options
@click.option("--script-args", default="", help="Arguments for the scripts, as one text.")
@click.option("--python", help="The interpreter for the scripts.  [default: python of the PATH]")
@click.option("--cwd", metavar="DIR", help="The folder the scripts run in.  [default: this one]")
@click.option("--timeout", metavar="TIME", help="Limit for each script, such as 90s or 10m.")
@click.option("--seed", type=int, metavar="N", default=0, help="For the random numbers of the script.")
@click.option("--base", metavar="DIR", help="Where benchwright keeps its files.")
@click.option("--show-output", is_flag=True, help="Show what the scripts print, on stderr.")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(scripts: tuple[str, ...], **values: Any) -> int:
    """List the models that SCRIPTS build and call, with parameters, arithmetic, inputs and where they are called.

    The scripts are run, unmodified; nothing is measured. Exit code: 0 models were found, 1 a script failed, 2 the input is
    wrong, 3 no model was found.
    """
    from benchwright.app.resolve import resolve
    from benchwright.cli.progress import Progress
    from benchwright.core.options import MeasureOptions
    from benchwright.core.request import Request
    from benchwright.executors.local import LocalExecutor
    from benchwright.kinds.models.batches import with_batches_known
    from benchwright.kinds.models.discovery import discover
    from benchwright.kinds.models.options import model_options_of
    from benchwright.kinds.models.sweep import named_point
    from benchwright.report.models.found import found_json, render_found
    from benchwright.runs.base_folder import BaseFolder

    timeout = values["timeout"]
    request = Request(
        targets=scripts,
        as_="models",
        script_args=words_of(values["script_args"], where="--script-args"),
        python=values["python"],
        cwd=values["cwd"],
        options=MeasureOptions(timeout_s=None if timeout is None else timeout_of(timeout)),
        models=model_options_of(values),
        params=values["params"],
        sweep=values["sweep"],
        search_dirs=values["search_dirs"],
        all_scripts=values["all_scripts"],
        seed=values["seed"],
        echo=values["show_output"],
    )
    folder = BaseFolder.choose(values["base"], os.environ)
    resolved = resolve(request)
    quiet = values["quiet"] or values["as_json"]
    with LocalExecutor() as executor, Progress(quiet=quiet) as progress:
        told = discover(resolved.benchmarks, resolved.settings, folder, executor, progress, count_work=True)
    told = with_batches_known(resolved.benchmarks, told)
    found = {b.name: each for b in resolved.benchmarks if (each := told.get(b.name) or _unread(b)) is not None}
    if not found:
        raise InvalidInput("none of them is a script whose models could be found", remedy="name Python scripts")
    width = terminal_width()
    if values["as_json"]:
        body = [{"benchmark": name, **found_json(each)} for name, each in found.items()]
        click.echo(msgspec.json.format(msgspec.json.encode({"scripts": body}), indent=1).decode())
    else:
        points = {benchmark.name: named_point(benchmark.parameters) for benchmark in resolved.benchmarks}
        click.echo(coloured("\n".join(render_found(found[n], width, points[n]) for n in found)), nl=False)
    if any(each.trouble for each in found.values()):
        return 1
    return 0 if any(each.models for each in found.values()) else 3


def _unread(benchmark: Benchmark) -> Discovery | None:
    """A script of a folder that is no Python, which is no reason to list nothing: with what is wrong. None: no script."""
    from benchwright.core.model import Discovery
    from benchwright.kinds.models.script import checked_notes

    if not benchmark.source.endswith(".py"):
        return None
    try:
        checked_notes(Path(benchmark.source))
    except InvalidInput as error:
        line = f" (line {error.line})" if error.line is not None else ""
        return Discovery(script=benchmark.source, models=(), exit_code=None, trouble=f"it {error.what}{line}")
    return None
