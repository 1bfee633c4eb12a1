"""`benchwright validate`."""

from __future__ import annotations

import json

import click

from benchwright import runner


@click.command(epilog="Example: benchwright validate suite.yaml tasks.cfg")
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--format", "format_", metavar="KIND", help="Kind of the files: suite, system, scaling, tasks, spec or script."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(ctx: click.Context, files: tuple[str, ...], format_: str | None, as_json: bool) -> None:
    """Check suites, system files, scaling files, task files, specifications and scripts; nothing runs. Exit code: 0 valid, 2 errors."""
    checked = [runner.validation.check_file(path, format_) for path in files]
    if as_json:
        click.echo(json.dumps([check.body() for check in checked], indent=1, ensure_ascii=False))
    else:
        for check in checked:
            click.echo(check.text())
    ctx.exit(2 if any(check.errors for check in checked) else 0)
