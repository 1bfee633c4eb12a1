"""`benchwright find`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from benchwright import results as kept
from benchwright import runner
from benchwright.cli.answer import answer, in_json, json_option
from benchwright.cli.options import PassingCommand, options_also_in
from benchwright.cli.terminal import coloured, terminal_width, with_all_scripts
from benchwright.core.errors import InvalidInput, TooManyScripts
from benchwright.core.model import ModelScript, ScriptDiscovery
from benchwright.kinds.interpreter import default_python
from benchwright.kinds.models.batches import with_batches_known
from benchwright.kinds.models.corpora import corpora_folder, shipped_corpora
from benchwright.kinds.models.scripts import scripts_in
from benchwright.kinds.models.zoo.catalogue import listed_zoos
from benchwright.kinds.models.zoo.interpreters import ZooPythons
from benchwright.kinds.models.zoo.targets import CORPORA, chosen, each_once, models_meant
from benchwright.kinds.sweep import named_point
from benchwright.options.values import comma_words
from benchwright.report.text.numbers import counted
from benchwright.report.text.one_line import clip
from benchwright.runs.base_folder import BaseFolder

if TYPE_CHECKING:
    from benchwright.core.benchmark import Benchmark
    from benchwright.kinds.models.zoo.catalogue import ListedModel


_EXAMPLES = """\b
Examples:
  benchwright find bert.py
  benchwright find bert.py --param batch_size=1,8 --max-depth 1 --json
  benchwright find bert.py::BertModel -- --layers 2
  benchwright find 'timm:resnet*' transformers:bert
  benchwright find --corpora
"""


class _FindCommand(PassingCommand):
    """Words after `--` are arguments of the scripts."""

    passed = "[-- ARGS...]"


@click.command(cls=_FindCommand, epilog=_EXAMPLES)
@click.argument("scripts", nargs=-1)
@click.option(
    "--corpora",
    is_flag=True,
    help="List the corpora instead: folders of model scripts that come with benchwright, and zoos; --corpora location prints where they are.",
)
@options_also_in("find")
@json_option("Print the models as JSON.")
@click.pass_context
def command(ctx: click.Context, /, scripts: tuple[str, ...], corpora: bool, **values: Any) -> int:
    """List the models that SCRIPTS build and call: parameters, arithmetic, inputs and call sites.

    Of a zoo (timm:resnet*), list its models without building them.

    The scripts run unmodified; nothing is measured. A script that was searched before, by find or run, and has not changed
    since is not run again; --rebuild always does. Exit code: 0 models found, 1 a script failed, 2 wrong input, 3 no
    models found.
    """
    if corpora:
        show_corpora(scripts, values)
        return 0
    return _show_models(scripts, ctx.meta.get("command", ()), values)


def _show_models(scripts: tuple[str, ...], words: tuple[str, ...], values: dict[str, Any]) -> int:
    """The models of `scripts`, called with `words`; returns the exit code."""
    from benchwright.executors.local import LocalExecutor
    from benchwright.kinds.models.discovery.job import discover
    from benchwright.kinds.models.report.found import found_json, render_found

    named = bool(scripts or values["search_dirs"])
    scripts = _without_zoos(scripts, values)
    if named and not scripts and not values["search_dirs"]:
        return 0
    options = runner.requests.options_of({**values, "as_": "models"}, targets=scripts, command=words)
    folder = BaseFolder(Path(str(options.base)))
    try:
        resolved = runner.resolve.resolve(options)
    except TooManyScripts as many:
        resolved = runner.resolve.resolve(with_all_scripts(options, many))
    quiet = values["quiet"] or in_json()
    with LocalExecutor() as executor, runner.terminal.open_progress(quiet=quiet) as progress:
        discovered = discover(resolved.benchmarks, resolved.options, folder, executor, progress)
    discovered = with_batches_known(resolved.benchmarks, discovered, options.items)
    found = {b.name: each for b in resolved.benchmarks if (each := discovered.get(b.name) or _unread(b)) is not None}
    benchmarks = {benchmark.name: benchmark for benchmark in resolved.benchmarks}
    found = {name: _selected(benchmarks[name], each) for name, each in found.items()}
    for name, each in found.items():
        if each.trouble is not None:
            found[name] = msgspec.structs.replace(
                each, trouble=kept.missing_module.explained(each.trouble, benchmarks[name])
            )
    if not found:
        raise InvalidInput("no target is a script with models", remedy="name Python scripts")
    width = terminal_width()
    points = {benchmark.name: named_point(benchmark.parameters) for benchmark in resolved.benchmarks}
    answer(
        lambda: {"scripts": [{"benchmark": name, **found_json(each)} for name, each in found.items()]},
        lambda: coloured("\n".join(render_found(found[n], width, points[n]) for n in found)),
    )
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

    pythons = zoo_pythons(values)
    show_zoo_models(zoo_models([*zoos.values()], pythons, values), pythons)
    left = tuple(folder for folder in folders if folder not in zoos)
    values |= {"search_dirs": left, "all_scripts": bool(left)}
    return tuple(target for target in scripts if target not in zoos)


def _selected(benchmark: Benchmark, found: ScriptDiscovery) -> ScriptDiscovery:
    """With the models that `script.py::NAME` means; InvalidInput if it has none of that name."""
    from benchwright.kinds.models.benchmarks import selected_models

    work = benchmark.workload
    words = work.select if isinstance(work, ModelScript) else ()
    return msgspec.structs.replace(found, models=tuple(selected_models(found, words))) if words else found


def _unread(benchmark: Benchmark) -> ScriptDiscovery | None:
    """A script of a folder that is no Python, which is no reason to list nothing: with what is wrong. None: no script."""
    from benchwright.kinds.models.script import checked_notes

    if not benchmark.source.endswith(".py"):
        return None
    try:
        checked_notes(Path(benchmark.source))
    except InvalidInput as error:
        line = f" (line {error.line})" if error.line is not None else ""
        return ScriptDiscovery(script=benchmark.source, models=(), exit_code=None, trouble=f"it {error.what}{line}")
    return None


# What `find` prints of a zoo: its models, without building them.


def zoo_pythons(values: Mapping[str, Any]) -> ZooPythons:
    """The interpreters that --python and --base mean."""
    return ZooPythons(values["python"], str(BaseFolder.choose(values["base"], os.environ).path / "zoos"))


def zoo_models(targets: Sequence[str], pythons: ZooPythons, values: Mapping[str, Any]) -> list[ListedModel]:
    """The models that zoo targets mean, each once."""
    select, exclude = comma_words(values["select"]), comma_words(values["exclude"])
    found = [
        model
        for target in targets
        for model in chosen(
            models_meant(target, pythons), tasks=values["tasks"], select=select, exclude=exclude, target=target
        )
    ]
    return each_once(found)


def show_zoo_models(models: Sequence[ListedModel], pythons: ZooPythons) -> None:
    """A line each, or JSON; and which zoos have separate environments."""
    for zoo in sorted({model.zoo for model in models}):
        if folder := pythons.own(zoo):
            click.echo(f"{zoo}: listed from its own environment, {folder}; --python chooses another", err=True)
    body = [{"target": m.target, "zoo": m.zoo, "name": m.name, "task": m.task, "labels": m.labels} for m in models]
    answer(lambda: {"models": body}, lambda: _zoo_text(models))


def _zoo_text(models: Sequence[ListedModel]) -> str:
    name, task = (max(map(len, each)) for each in ([m.target for m in models], [m.task for m in models]))
    lines = []
    for model in models:
        labels = " ".join(f"{key}={value}" for key, value in model.labels.items())
        lines.append(clip(f"{model.target:{name}}  {model.task:{task}}  {labels}".rstrip(), terminal_width()))
    them = "it" if len(models) == 1 else "them"
    return "\n".join([*lines, f"{counted(len(models), 'model')}; measure {them} with 'benchwright run'"])


# `benchwright find --corpora`.


def show_corpora(words: tuple[str, ...], values: Mapping[str, Any]) -> None:
    """Folders of model scripts that come with benchwright, and zoos; with the word `location`, where those folders are."""
    if words not in ((), ("list",), ("location",)):
        raise InvalidInput(
            f"'{' '.join(words)}' is no word for it", where="--corpora", remedy="write location, or nothing"
        )
    if words == ("location",):
        answer(lambda: {"location": corpora_folder()}, corpora_folder)
        return
    found: list[dict[str, object]] = [
        {"name": name, "folder": folder, "scripts": len(scripts_in(folder))}
        for name, folder in shipped_corpora().items()
    ]
    pythons = zoo_pythons(values)
    zoos = listed_zoos(pythons.given or default_python())
    zoos |= {zoo: listed_zoos(pythons.of(zoo), [zoo])[zoo] for zoo in zoos if pythons.own(zoo)}
    meant = {name: target.partition(":")[0] for name, target in CORPORA.items()}
    for name, zoo in (meant | {zoo: zoo for zoo in zoos if zoo not in meant.values()}).items():
        catalogue = zoos[zoo]
        found.append({"name": name, "zoo": zoo, "version": catalogue.version or None, "models": len(catalogue.models)})
    width = max((len(str(each["name"])) for each in found), default=0)
    answer(lambda: found, lambda: "\n".join(f"{each['name']:{width}}  {_words(each)}" for each in found))


def _words(corpus: dict[str, object]) -> str:
    if "zoo" not in corpus:
        return counted(int(str(corpus["scripts"])), "script")
    if not corpus["version"]:
        return f"zoo {corpus['zoo']}, not installed: benchwright install --zoo {corpus['zoo']}"
    return f"zoo {corpus['zoo']} {corpus['version']}, {counted(int(str(corpus['models'])), 'model')}"
