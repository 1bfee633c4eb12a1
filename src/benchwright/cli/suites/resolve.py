"""`benchwright resolve`."""

from __future__ import annotations

import json
from typing import Any

import click

EPILOG = "Example: benchwright resolve suite.yaml --select nlp --override '*.max_duration=60'"


@click.command(epilog=EPILOG)
@click.argument("suite", required=False)
@click.option("--config", help="The suite; the same as naming it.  [default: $BENCHWRIGHT_CONFIG]")
@click.option(
    "--select", multiple=True, metavar="WORDS", help="Only entries with these names, groups or tags. Repeatable."
)
@click.option(
    "--exclude", multiple=True, metavar="WORDS", help="Not entries with these names, groups or tags. Repeatable."
)
@click.option("--override", "overrides", multiple=True, metavar="ENTRY.KEY=VALUE", help="Change a value. Repeatable.")
@click.option("--system", hidden=True, help="Makes no difference: placeholders stay as they are.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of YAML.")
def command(
    suite: str | None,
    config: str | None,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    overrides: tuple[str, ...],
    system: str | None,
    as_json: bool,
) -> None:
    """Print the entries of SUITE as they end up: included, inherited, expanded, with defaults. Placeholders stay."""
    from benchwright.app.checking import resolve_suite

    resolved = resolve_suite(suite or config, select=select, exclude=exclude, overrides=overrides)
    for warning in resolved.warnings:
        click.echo(f"benchwright: {warning}", err=True)
    if as_json:
        click.echo(json.dumps(resolved.entries, indent=1, ensure_ascii=False))
    else:
        click.echo(_yaml(resolved.entries), nl=False)


def _yaml(entries: dict[str, Any]) -> str:
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        """Lists stand below their keys, as people write them, and nothing is an alias."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    text: str = yaml.dump(entries, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=1000)
    return text if entries else ""
