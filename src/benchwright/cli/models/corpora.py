"""`benchwright find --corpora`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from benchwright.core.errors import InvalidInput


def show_corpora(words: tuple[str, ...], values: Mapping[str, Any], *, as_json: bool) -> None:
    """Folders of model scripts that come with benchwright, and zoos; with the word `location`, where those folders are."""
    from benchwright.cli.models.zoo_list import zoo_pythons
    from benchwright.kinds.interpreter import default_python
    from benchwright.kinds.models.corpora import corpora_folder, shipped_corpora
    from benchwright.kinds.models.scripts import scripts_in
    from benchwright.kinds.models.zoo.listing import listed_zoos
    from benchwright.kinds.models.zoo.targets import CORPORA

    if words not in ((), ("list",), ("location",)):
        raise InvalidInput(
            f"'{' '.join(words)}' is no word for it", where="--corpora", remedy="write location, or nothing"
        )
    if words == ("location",):
        click.echo(json.dumps({"location": corpora_folder()}) if as_json else corpora_folder())
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
        told = zoos[zoo]
        found.append({"name": name, "zoo": zoo, "version": told.version or None, "models": len(told.models)})
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    width = max((len(str(each["name"])) for each in found), default=0)
    for each in found:
        click.echo(f"{each['name']:{width}}  {_words(each)}")


def _words(corpus: dict[str, object]) -> str:
    from benchwright.report.text.numbers import counted

    if "zoo" not in corpus:
        return counted(int(str(corpus["scripts"])), "script")
    if not corpus["version"]:
        return f"zoo {corpus['zoo']}, not installed: benchwright install --zoo {corpus['zoo']}"
    return f"zoo {corpus['zoo']} {corpus['version']}, {counted(int(str(corpus['models'])), 'model')}"
