"""Writes the reference of the command line from the commands themselves.

python docs/generate_cli.py docs/reference/cli.md
python docs/generate_cli.py --check docs/reference/cli.md     exit 1 if that file is out of date
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

HEADER = """# The command line

<!-- Written by docs/generate_cli.py from the commands themselves; `make docs` writes it again. -->

`bw` is short for `benchwright`. Durations are written `90s`, `10m`, `2h`; percentages `1%`. Results go to stdout, progress
and advice to stderr.

| exit code | means |
|---|---|
| 0 | fine |
| 1 | something that was measured failed |
| 2 | the input is wrong: a file, an option or an argument |
| 3 | nothing could be measured |
| 130 | interrupted; `--resume` goes on |
"""


def reference(root: click.Command, name: str) -> str:
    """The whole page."""
    return "\n".join([HEADER, *_pages(root, click.Context(root, info_name=name, **root.context_settings))])


def _pages(command: click.Command, context: click.Context) -> Iterator[str]:
    """One section for `command`, then one for each of its commands."""
    yield f"## `{context.command_path}`\n"
    yield f"```\n{' '.join([context.command_path, *command.collect_usage_pieces(context)])}\n```\n"
    if command.help:
        yield _prose(command.help) + "\n"
    options = list(_rows(command, context))
    if options:
        yield "| option | does |\n|---|---|\n" + "\n".join(options) + "\n"
    if command.epilog:
        yield _prose(command.epilog) + "\n"
    if not isinstance(command, click.Group):
        return
    children = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
    for name, child in children:
        if child is not None and not child.hidden:
            yield from _pages(child, click.Context(child, info_name=name, parent=context, **child.context_settings))


def _prose(text: str) -> str:
    r"""A help text as Markdown: paragraphs that click is told to keep as they are (\b) become code blocks."""
    paragraphs = inspect.cleandoc(text).split("\f")[0].strip().split("\n\n")
    written = []
    for paragraph in paragraphs:
        kept = paragraph.startswith("\b\n")
        written.append("```\n" + inspect.cleandoc(paragraph[2:]) + "\n```" if kept else paragraph)
    return "\n\n".join(written)


def _rows(command: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[1]:
            names, text = (part.replace("|", "\\|").replace("\n", " ") for part in record)
            yield f"| `{names}` | {text} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("page", type=Path)
    options = parser.parse_args()

    from benchwright.cli.main import cli

    wanted = reference(cli, "benchwright")
    if options.check:
        if options.page.exists() and options.page.read_text(encoding="utf-8") == wanted:
            return 0
        print(f"{options.page} is out of date; write it again with: make docs", file=sys.stderr)
        return 1
    options.page.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
