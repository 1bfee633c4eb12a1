"""`benchwright new`."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from benchwright.core.errors import InvalidInput

_EXAMPLES = """\b
Examples:
  benchwright new mybench
  benchwright new mybench --template model --dir benchmarks
  benchwright new mymodel --template script
"""


@click.command(epilog=_EXAMPLES)
@click.argument("name", required=False)
@click.option("--name", "name_too", hidden=True)
@click.option(
    "--template",
    default="simple",
    show_default=True,
    metavar="simple|stdout|model|script|…",
    help="Starting point: a loop timed by benchprobe, a program that prints its numbers, a torch model, "
    "one file that builds and calls a model, or what a dialect of suites adds.",
)
@click.option("--dir", "parent", default=".", metavar="DIR", help="Parent folder.  [default: this one]")
@click.option("--force", is_flag=True, help="Overwrite files in an existing folder.")
def command(name: str | None, name_too: str | None, template: str, parent: str, force: bool) -> None:
    """Create a folder with a new benchmark, NAME, that runs as it is; with --template script the file NAME.py.

    `benchwright run NAME` runs it. Its dev.yaml is a suite with this benchmark alone, for `run` and the other commands.
    """
    from benchwright.kinds.suite.setup.new import SCRIPT, make_benchmark, make_script

    chosen = name or name_too
    if not chosen or (name and name_too):
        raise InvalidInput("give one name", where="NAME", remedy="write benchwright new mybench")
    if template == SCRIPT:
        script = _shown(make_script(chosen, Path(parent).expanduser(), force=force))
        click.echo(
            f"created {script}\nnext:\n  benchwright run {shlex.quote(script)} --runtime torch-eager,onnxruntime"
        )
        return
    folder = make_benchmark(chosen, template, Path(parent).expanduser(), force=force)
    click.echo(f"created {_shown(folder)}: {', '.join(sorted(path.name for path in folder.iterdir()))}")
    click.echo(f"next:\n  benchwright run {shlex.quote(_shown(folder))}")


def _shown(folder: Path) -> str:
    """The path, relative to here if it is below."""
    absolute, here = str(folder.absolute()), os.getcwd()
    short = os.path.relpath(absolute, here)
    return absolute if short.startswith("..") else short
