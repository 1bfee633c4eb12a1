"""`benchwright corpora`."""

from __future__ import annotations

import json

import click

_EXAMPLES = """\b
Examples:
  benchwright corpora
  benchwright corpora location
  benchwright run --all --search-dir selftest
"""


@click.command(epilog=_EXAMPLES)
@click.argument("what", type=click.Choice(["list", "location"]), default="list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(what: str, as_json: bool) -> None:
    """List the corpora of model scripts that come with benchwright, or print the folder they are in."""
    from benchwright.kinds.models.corpora import corpora_folder, shipped_corpora
    from benchwright.kinds.models.scripts import scripts_in

    if what == "location":
        click.echo(json.dumps({"location": corpora_folder()}) if as_json else corpora_folder())
        return
    found = [
        {"name": name, "folder": folder, "scripts": len(scripts_in(folder))}
        for name, folder in shipped_corpora().items()
    ]
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    width = max((len(str(each["name"])) for each in found), default=0)
    for each in found:
        count = each["scripts"]
        click.echo(f"{each['name']:{width}}  {count} script{'' if count == 1 else 's'}")
