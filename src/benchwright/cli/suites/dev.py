"""`benchwright dev`."""

from __future__ import annotations

import os
import sys

import click

from benchwright import runner
from benchwright.cli.options import PassingCommand
from benchwright.cli.suites.options import suite_options, suite_targets_of
from benchwright.core.errors import InvalidInput

_EXAMPLES = """\b
Examples:
  benchwright dev suite.yaml --select resnet50
  benchwright dev suite.yaml --select resnet50 -- python -m benchprobe main.py
"""


@click.command(cls=PassingCommand, epilog=_EXAMPLES)
@suite_options
@click.pass_context
def command(ctx: click.Context, /, **values: object) -> None:
    """Open a shell in a benchmark's folder and environment, or run COMMAND there and return its exit code."""
    from benchwright.kinds.suite.setup.dev import development_session

    words = ctx.meta.get("command", ())
    if "command" in ctx.meta and not words:
        raise InvalidInput("no command after --", remedy="leave -- out for a shell")
    session = development_session(
        suite_targets_of(values),
        runner.requests.options_of(values),
        words,
        tell=lambda text: click.echo(f"benchwright: {text}", err=True),
    )
    if not words:
        click.echo(f"{session.benchmark}: {session.argv[0]} in {session.cwd}; type exit to leave", err=True)
    os.chdir(session.cwd)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvpe(session.argv[0], session.argv, session.env)
    except OSError as error:
        raise InvalidInput(
            f"'{session.argv[0]}' cannot be run: {error.strerror}", remedy="check its name, or run: benchwright install"
        ) from None
