"""`benchwright install`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from benchwright import runner
from benchwright.cli.options import options
from benchwright.cli.suites.options import (
    index_options,
    index_options_from,
    outcome_options,
    show_outcome,
    suite_options,
    suite_targets_of,
)
from benchwright.core.errors import InvalidInput
from benchwright.core.quantities import format_duration
from benchwright.report.text.numbers import counted

if TYPE_CHECKING:
    from benchwright.environments.environment import Installed

_EXAMPLES = """\b
Examples:
  benchwright install suite.yaml
  benchwright install suite.yaml --select resnet50 --force
  benchwright install --zoo transformers --zoo timm
  benchwright install --zoo timm --own-env
  benchwright install suite.yaml --variant cuda --index https://packages.example/cu128
"""


@click.command(epilog=_EXAMPLES)
@suite_options
@click.option("--force", is_flag=True, help="Recreate the environments even if nothing changed.")
@click.option("--update", is_flag=True, help="Recreate them if newer versions fit.")
@click.option(
    "--variant", metavar="V", help="Install requirements.V.txt, or `unpinned`, instead of the suite's choice."
)
@click.option("--constraints", multiple=True, metavar="FILE", help="Additional constraints file. Repeatable.")
@click.option(
    "--jobs", type=click.IntRange(1), metavar="N", help="Environments to install in parallel.  [default: up to 4]"
)
@click.option(
    "--zoo",
    "zoos",
    multiple=True,
    metavar="NAME",
    help="Instead of a suite: what the models of this zoo need. Repeatable.",
)
@click.option(
    "--corpus", "corpora", multiple=True, metavar="NAME", help="The same for a corpus of scripts. Repeatable."
)
@click.option(
    "--own-env",
    is_flag=True,
    help="With --zoo: into an environment of the zoo's own in the base folder, which run and find use from then on.",
)
@options("python")
@index_options
@outcome_options
def command(quiet: bool, **values: Any) -> int:
    """Create SUITE's environments, one per install group; existing ones are reused until something changes.

    With --zoo or --corpus, install what models need into the interpreter they are measured with (--python). An installed
    torch is kept, and an install that breaks the import of a library is undone. With --own-env, install into an environment
    for that zoo alone (of --python, --constraints).

    If an install fails, the package is named and the previous environment stays in use. Exit code: 0 success, 1 an
    environment failed, 2 wrong suite, 3 the base folder cannot be used.
    """
    from benchwright.kinds.suite.setup.install import InstallOptions, install

    if values["zoos"] or values["corpora"]:
        from benchwright.cli.suites.zoo_install import install_zoos

        done = install_zoos(values, quiet=quiet)
        return show_outcome("zoos", done, _text(done), log_lines=10)
    if values["own_env"]:
        raise InvalidInput("no zoo is named", where="--own-env", remedy="name one with --zoo; suites have their own")
    chosen = {name: values[name] for name in ("force", "update", "variant", "jobs", "constraints")}
    asked = InstallOptions(**chosen, where=index_options_from(values))
    with runner.terminal.open_progress(quiet=quiet) as progress:
        done = install(suite_targets_of(values), runner.requests.options_of(values), asked, progress)
    return show_outcome("groups", done, _text(done))


def _text(done: Sequence[Installed]) -> str:
    width = max(len(x.name) for x in done)
    lines = []
    for x in done:
        about = [
            x.status,
            f"Python {x.python}" if x.python else "",
            counted(len(x.packages), "package") if x.python else "",  # else in an environment that is not ours
        ]
        if x.status == "built":
            about.append(format_duration(x.seconds))
        lines.append(f"{x.name:<{width}}  {', '.join(filter(None, about))}  {x.path}")
    return "\n".join(lines) + "\n"
