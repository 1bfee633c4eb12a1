"""`benchwright resolve`."""

from __future__ import annotations

from typing import Any

import click

from benchwright import runner
from benchwright.cli.answer import answer, json_option
from benchwright.cli.options import options
from benchwright.core.errors import InvalidInput

EPILOG = "Example: benchwright resolve suite.yaml --select nlp --override '*.max_duration=60'"


@click.command(epilog=EPILOG)
@click.argument("suite", required=False)
@options("configs", "select", "exclude", "overrides")
@click.option("--system", hidden=True, help="Makes no difference: placeholders stay as they are.")
@json_option("Print JSON instead of YAML.")
def command(suite: str | None, configs: tuple[str, ...], system: str | None, **chosen: Any) -> None:
    """Print SUITE with includes, inheritance, matrices and defaults resolved; placeholders stay.

    Of a task file: its tasks, including tasks that need GPUs this machine lacks.
    """
    named = [*filter(None, [suite]), *configs]
    if len(named) > 1:
        raise InvalidInput("only one file can be resolved", remedy=f"leave {named[1]} out")
    resolved = runner.validation.resolve_file(next(iter(named), None), **chosen)
    for warning in resolved.warnings:
        click.echo(f"benchwright: {warning}", err=True)
    answer(lambda: resolved.entries, lambda: _yaml(resolved.entries))


def _yaml(entries: dict[str, Any]) -> str:
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        """Lists stand below their keys, as people write them, and nothing is an alias."""

        def ignore_aliases(self, data: object) -> bool:
            return True

    text: str = yaml.dump(entries, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=1000)
    return text if entries else ""
