"""What `find` prints of a zoo: its models, without building them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from benchwright.cli.terminal import terminal_width
from benchwright.report.text.numbers import counted

if TYPE_CHECKING:
    from benchwright.kinds.models.zoo.listing import ListedModel


def zoo_models(targets: Sequence[str], values: Mapping[str, Any]) -> list[ListedModel]:
    """The models that zoo targets mean, each once."""
    from benchwright.kinds.interpreter import default_python
    from benchwright.kinds.models.zoo.targets import chosen, each_once, models_meant
    from benchwright.options.values import comma_words

    python = values["python"] or default_python()
    select, exclude = comma_words(values["select"]), comma_words(values["exclude"])
    found = [
        model
        for target in targets
        for model in chosen(
            models_meant(target, python), tasks=values["tasks"], select=select, exclude=exclude, target=target
        )
    ]
    return each_once(found)


def show_zoo_models(models: Sequence[ListedModel], *, as_json: bool) -> None:
    """A line each, or JSON."""
    if as_json:
        body = [{"target": m.target, "zoo": m.zoo, "name": m.name, "task": m.task, "labels": m.labels} for m in models]
        click.echo(json.dumps({"models": body}, indent=1))
        return
    from benchwright.report.text.one_line import clip

    name, task = (max(map(len, each)) for each in ([m.target for m in models], [m.task for m in models]))
    for model in models:
        labels = " ".join(f"{key}={value}" for key, value in model.labels.items())
        click.echo(clip(f"{model.target:{name}}  {model.task:{task}}  {labels}".rstrip(), terminal_width()))
    click.echo(
        f"{counted(len(models), 'model')}; measure {'it' if len(models) == 1 else 'them'} with 'benchwright run'"
    )
