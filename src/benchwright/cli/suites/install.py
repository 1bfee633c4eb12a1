"""`benchwright install`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

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
from benchwright.core.numbers.quantities import format_duration

if TYPE_CHECKING:
    from benchwright.environments.built import Installed
    from benchwright.kinds.models.zoo.own_environment import OwnEnvironmentOptions

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
def command(as_json: bool, quiet: bool, **values: Any) -> int:
    """Create SUITE's environments, one per install group; existing ones are reused until something changes.

    With --zoo or --corpus, install what models need into the interpreter they are measured with (--python); the torch
    that is there stays, and an install after which a library no longer imports is undone. With --own-env, into an environment
    made for that zoo alone (of --python, --constraints).

    If an install fails, the package is named and the previous environment stays in use. Exit code: 0 success, 1 an
    environment failed, 2 wrong suite, 3 the base folder cannot be used.
    """
    from benchwright.app.progress.terminal import open_progress
    from benchwright.app.requests import options_of
    from benchwright.kinds.suite.setup.install import InstallOptions, install

    if values["zoos"] or values["corpora"]:
        return _install_zoos(values, as_json=as_json, quiet=quiet)
    if values["own_env"]:
        raise InvalidInput("no zoo is named", where="--own-env", remedy="name one with --zoo; suites have their own")
    chosen = {name: values[name] for name in ("force", "update", "variant", "jobs", "constraints")}
    asked = InstallOptions(**chosen, where=index_options_from(values))
    with open_progress(quiet=quiet) as progress:
        done = install(suite_targets_of(values), options_of(values), asked, progress)
    return show_outcome("groups", done, _text(done), as_json=as_json)


def _install_zoos(values: dict[str, Any], *, as_json: bool, quiet: bool) -> int:
    import os

    from benchwright.app.progress.terminal import open_progress
    from benchwright.environments.installers import choose_installer
    from benchwright.kinds.interpreter import default_python
    from benchwright.kinds.models.zoo.install import install_wanted
    from benchwright.kinds.models.zoo.own_environment import install_apart
    from benchwright.kinds.models.zoo.wanted import wanted_of
    from benchwright.kinds.suite.setup.install import package_indexes
    from benchwright.runs.base_folder import BaseFolder

    if values["suites"]:
        raise InvalidInput("a suite and a zoo are named", where="--zoo", remedy="install one at a time")
    python = values["python"] or default_python()
    where = index_options_from(values)
    installer = choose_installer(where.installer, package_indexes(where))
    wanted = wanted_of(values["zoos"], values["corpora"], python, _words_given(values))
    folder = BaseFolder.choose(values["base"], os.environ).path / "zoos"
    with open_progress(quiet=quiet) as progress:
        if values["own_env"]:
            done = install_apart(wanted, _own_options(values, python), installer, str(folder), progress)
        else:
            done = install_wanted(wanted, python, installer, folder, progress)
    return show_outcome("zoos", done, _text(done), as_json=as_json, log_lines=10)


def _own_options(values: dict[str, Any], python: str) -> OwnEnvironmentOptions:
    from benchwright.environments.vendor import arch_here
    from benchwright.kinds.models.zoo.own_environment import OwnEnvironmentOptions
    from benchwright.kinds.suite.setup.install import vendor_constraints

    constraints = vendor_constraints(arch_here(), None, (), (), values["constraints"])
    return OwnEnvironmentOptions(
        python=python, constraints=tuple(constraints), force=values["force"], update=values["update"]
    )


def _words_given(values: dict[str, Any]) -> list[str]:
    """Those options that a second command for the same zoo needs, too."""
    one = {"--base": values["base"], "--python": values["python"], "--index-url": values["index_url"]}
    one["--installer"] = values["installer"]
    many = {"--index": values["indexes"], "--find-links": values["find_links"]}
    pairs = [*one.items(), *((option, value) for option, each in many.items() for value in each)]
    return [word for option, value in pairs if value for word in (option, str(value))]


def _text(done: Sequence[Installed]) -> str:
    from benchwright.report.text.numbers import counted

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
