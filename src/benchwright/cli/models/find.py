"""`benchwright find`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from benchwright.cli.options import PassingCommand, options
from benchwright.cli.terminal import coloured, terminal_width, with_all_scripts
from benchwright.core.errors import InvalidInput, TooManyScripts

if TYPE_CHECKING:
    from benchwright.core.benchmark import Benchmark
    from benchwright.core.model import ScriptDiscovery

_EXAMPLES = """\b
Examples:
  benchwright find bert.py
  benchwright find bert.py --param batch_size=1,8 --max-depth 1 --json
  benchwright find bert.py::BertModel -- --layers 2
  benchwright find 'timm:resnet*' transformers:bert
  benchwright find --corpora
"""


class _FindCommand(PassingCommand):
    """What follows `--` are arguments of the scripts."""

    passed = "[-- ARGS...]"


@click.command(cls=_FindCommand, epilog=_EXAMPLES)
@click.argument("scripts", nargs=-1)
@click.option(
    "--corpora",
    is_flag=True,
    help="List the corpora instead: folders of model scripts that come with benchwright, and zoos; --corpora location prints where they are.",
)
@options(
    "modules", "params", "sweep", "max_depth", "search_dirs", "all_scripts", "weights", "script_args", "python", "cwd"
)
@options(
    "select",
    "exclude",
    "tasks",
    "timeout",
    "find_timeout",
    "rebuild",
    "seed",
    "base",
    "show_output",
    as_json="Print the models as JSON.",
    quiet="No progress.",
)
@click.pass_context
def command(ctx: click.Context, /, scripts: tuple[str, ...], corpora: bool, **values: Any) -> int:
    """List the models that SCRIPTS build and call: parameters, arithmetic, inputs and call sites.

    Of a zoo (timm:resnet*), list its models without building them.

    The scripts run unmodified; nothing is measured. A script that was searched before, by find or run, and has not changed
    since is not run again; --rebuild always does. Exit code: 0 models found, 1 a script failed, 2 wrong input, 3 no
    models found.
    """
    if corpora:
        from benchwright.cli.models.corpora import show_corpora

        show_corpora(scripts, values, as_json=values["as_json"])
        return 0
    return _show_models(scripts, ctx.meta.get("command", ()), values)


def _show_models(scripts: tuple[str, ...], words: tuple[str, ...], values: dict[str, Any]) -> int:
    """The models of `scripts`, called with `words`; returns the exit code."""
    from benchwright.app.missing_module import explained
    from benchwright.app.progress.terminal import open_progress
    from benchwright.app.requests import options_of
    from benchwright.app.resolve import resolve
    from benchwright.executors.local import LocalExecutor
    from benchwright.kinds.models.batches import with_batches_known
    from benchwright.kinds.models.discovery.launching import discover
    from benchwright.kinds.models.report.found import found_json, render_found
    from benchwright.kinds.sweep import named_point
    from benchwright.runs.base_folder import BaseFolder

    named = bool(scripts or values["search_dirs"])
    scripts = _without_zoos(scripts, values)
    if named and not scripts and not values["search_dirs"]:
        return 0
    options = options_of({**values, "as_": "models"}, targets=scripts, command=words)
    folder = BaseFolder(Path(str(options.base)))
    try:
        resolved = resolve(options)
    except TooManyScripts as many:
        resolved = resolve(with_all_scripts(options, many))
    quiet = values["quiet"] or values["as_json"]
    with LocalExecutor() as executor, open_progress(quiet=quiet) as progress:
        told = discover(resolved.benchmarks, resolved.options, folder, executor, progress)
    told = with_batches_known(resolved.benchmarks, told, options.items)
    found = {b.name: each for b in resolved.benchmarks if (each := told.get(b.name) or _unread(b)) is not None}
    benchmarks = {benchmark.name: benchmark for benchmark in resolved.benchmarks}
    found = {name: _selected(benchmarks[name], each) for name, each in found.items()}
    for name, each in found.items():
        if each.trouble is not None:
            found[name] = msgspec.structs.replace(each, trouble=explained(each.trouble, benchmarks[name]))
    if not found:
        raise InvalidInput("no target is a script with models", remedy="name Python scripts")
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


def _without_zoos(scripts: tuple[str, ...], values: dict[str, Any]) -> tuple[str, ...]:
    """The other scripts; models of zoos are shown, and their corpora taken out of the search folders in `values`."""
    from benchwright.kinds.models.scripts import zoo_corpus
    from benchwright.kinds.models.zoo.targets import is_zoo_target

    folders = values["search_dirs"] if values["all_scripts"] else ()
    zoos = {name: zoo for name in (*scripts, *folders) if (zoo := zoo_corpus(name) or name) and is_zoo_target(zoo)}
    if not zoos:
        return scripts
    from benchwright.cli.models.zoo_list import show_zoo_models, zoo_models, zoo_pythons

    pythons = zoo_pythons(values)
    show_zoo_models(zoo_models([*zoos.values()], pythons, values), pythons, as_json=values["as_json"])
    left = tuple(folder for folder in folders if folder not in zoos)
    values |= {"search_dirs": left, "all_scripts": bool(left)}
    return tuple(target for target in scripts if target not in zoos)


def _selected(benchmark: Benchmark, found: ScriptDiscovery) -> ScriptDiscovery:
    """With the models that `script.py::NAME` means; InvalidInput if it has none of that name."""
    from benchwright.core.model import ModelScript
    from benchwright.kinds.models.benchmarks import selected_models

    work = benchmark.workload
    words = work.select if isinstance(work, ModelScript) else ()
    return msgspec.structs.replace(found, models=tuple(selected_models(found, words))) if words else found


def _unread(benchmark: Benchmark) -> ScriptDiscovery | None:
    """A script of a folder that is no Python, which is no reason to list nothing: with what is wrong. None: no script."""
    from benchwright.core.model import ScriptDiscovery
    from benchwright.kinds.models.script import checked_notes

    if not benchmark.source.endswith(".py"):
        return None
    try:
        checked_notes(Path(benchmark.source))
    except InvalidInput as error:
        line = f" (line {error.line})" if error.line is not None else ""
        return ScriptDiscovery(script=benchmark.source, models=(), exit_code=None, trouble=f"it {error.what}{line}")
    return None
