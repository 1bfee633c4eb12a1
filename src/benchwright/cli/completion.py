"""`benchwright completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command(epilog="Example: benchwright completion bash >> ~/.bashrc")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of benchwright and bw for SHELL; add it to the shell's start-up file."""
    from benchwright.cli.main import cli

    completion = get_completion_class(shell)
    assert completion is not None, "click knows all that the argument allows"
    for program in ("benchwright", "bw"):
        click.echo(completion(cli, {}, program, f"_{program.upper()}_COMPLETE").source())
