"""`--format`, `--json` and `-o FILE` of the commands that show results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from benchwright.cli.answer import in_json
from benchwright.cli.terminal import coloured, show
from benchwright.core.errors import InvalidInput
from benchwright.core.whole_file import unwritable, write_whole

_ENDINGS = {".html": "html", ".htm": "html", ".md": "markdown", ".csv": "csv", ".json": "json", ".txt": "screen"}

output_option = click.option(
    "-o", "--output", metavar="FILE", help="Write to FILE; .html, .md, .csv, .json or .txt chooses the format."
)


def by_ending(file: str) -> str:
    return _ENDINGS.get(Path(file).suffix.lower(), "screen")


def chosen_format(command: str, given: str | None, output: str | None, *, known: Sequence[str] = ()) -> str:
    """The format by --format, else by --json, else by the file's ending, else `screen`. `known`: the only formats of the command."""
    if in_json() and given not in (None, "json"):
        raise InvalidInput(
            f"--json and --format {given} contradict each other", where=command, remedy="drop one of them"
        )
    ending = Path(output).suffix.lower() if output else ""
    chosen = given or ("json" if in_json() else by_ending(output or ""))
    if known and chosen not in known:
        endings = ", ".join(end for end, name in _ENDINGS.items() if name in known and end != ".htm")
        remedy = f"it writes {endings}; 'benchwright report' also writes the others"
        raise InvalidInput(f"{command} cannot write {ending or chosen}", where="--output", remedy=remedy)
    return chosen


def put_out(text: str, format_: str, output: str | None) -> None:
    """To `output`, or to stdout if there is none or it is `-`."""
    if output is None or output == "-":
        show(coloured(text) if format_ == "screen" else text)
        return
    try:
        write_whole(output, text.encode())
    except OSError as error:
        raise unwritable(output, error) from error
    click.echo(f"written: {output}", err=True)
