"""What `find` prints of a zoo: its models, without building them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from benchwright.cli.terminal import terminal_width
from benchwright.report.text.numbers import counted

if TYPE_CHECKING:
    from benchwright.kinds.models.zoo.interpreters import ZooPythons
    from benchwright.kinds.models.zoo.listing import ListedModel


def zoo_pythons(values: Mapping[str, Any]) -> ZooPythons:
    """The interpreters that --python and --base mean."""
    from benchwright.kinds.models.zoo.interpreters import ZooPythons
    from benchwright.runs.base_folder import BaseFolder

    return ZooPythons(values["python"], str(BaseFolder.choose(values["base"], os.environ).path / "zoos"))


def zoo_models(targets: Sequence[str], pythons: ZooPythons, values: Mapping[str, Any]) -> list[ListedModel]:
    """The models that zoo targets mean, each once."""
    from benchwright.kinds.models.zoo.targets import chosen, each_once, models_meant
    from benchwright.options.values import comma_words

    select, exclude = comma_words(values["select"]), comma_words(values["exclude"])
    found = [
        model
        for target in targets
        for model in chosen(
            models_meant(target, pythons), tasks=values["tasks"], select=select, exclude=exclude, target=target
        )
    ]
    return each_once(found)


def show_zoo_models(models: Sequence[ListedModel], pythons: ZooPythons, *, as_json: bool) -> None:
    """A line each, or JSON; and which zoos have environments of their own."""
    for zoo in sorted({model.zoo for model in models}):
        if folder := pythons.own(zoo):
            click.echo(f"{zoo}: listed from its own environment, {folder}; --python chooses another", err=True)
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
