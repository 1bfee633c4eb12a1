"""`benchwright completion`."""

from __future__ import annotations

import click


@click.command(epilog="Example: benchwright completion bash >> ~/.bashrc")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.option("--program", default="benchwright", show_default=True, help="The name to complete: benchwright or bw.")
def command(shell: str, program: str) -> None:
    """Print the completion script for SHELL; put it into the shell's start-up file."""
    from click.shell_completion import get_completion_class

    from benchwright.cli.main import cli

    variable = f"_{program.upper()}_COMPLETE"
    completion = get_completion_class(shell)
    if completion is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(completion(cli, {}, program, variable).source())
