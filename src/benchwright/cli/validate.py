"""`benchwright validate`."""

from __future__ import annotations

import click

from benchwright import runner
from benchwright.cli.answer import answer, json_option


@click.command(epilog="Example: benchwright validate suite.yaml tasks.cfg")
@click.argument("files", nargs=-1, required=True)
@click.option(
    "--format", "format_", metavar="KIND", help="Kind of the files: suite, system, scaling, tasks, spec or script."
)
@json_option()
@click.pass_context
def command(ctx: click.Context, files: tuple[str, ...], format_: str | None) -> None:
    """Check suites, system files, scaling files, task files, specifications and scripts; nothing runs. Exit code: 0 valid, 2 errors."""
    checked = [runner.validation.check_file(path, format_) for path in files]
    answer(lambda: [check.body() for check in checked], lambda: "\n".join(check.text() for check in checked))
    ctx.exit(2 if any(check.errors for check in checked) else 0)
