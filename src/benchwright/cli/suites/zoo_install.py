"""Installs what the models of zoos and corpora need."""

from __future__ import annotations

import os
from typing import Any

from benchwright import runner
from benchwright.cli.suites.options import index_options_from
from benchwright.core.errors import InvalidInput
from benchwright.environments.environment import Installed
from benchwright.environments.installers import choose_installer
from benchwright.environments.vendor import arch_here
from benchwright.kinds.interpreter import default_python
from benchwright.kinds.models.zoo.install import install_wanted
from benchwright.kinds.models.zoo.own_environment import OwnEnvironmentOptions, install_apart
from benchwright.kinds.models.zoo.wanted import wanted_of
from benchwright.kinds.suite.setup.install import package_indexes, vendor_constraints
from benchwright.runs.base_folder import BaseFolder


def install_zoos(values: dict[str, Any], *, quiet: bool) -> list[Installed]:
    """Installs the packages that models of zoos and corpora need, by the options of `bw install`."""
    if values["suites"]:
        raise InvalidInput("a suite and a zoo are named", where="--zoo", remedy="install one at a time")
    python = values["python"] or default_python()
    where = index_options_from(values)
    installer = choose_installer(where.installer, package_indexes(where))
    wanted = wanted_of(values["zoos"], values["corpora"], python, _words_given(values))
    folder = BaseFolder.choose(values["base"], os.environ).path / "zoos"
    with runner.terminal.open_progress(quiet=quiet) as progress:
        if values["own_env"]:
            return install_apart(wanted, _own_options(values, python), installer, str(folder), progress)
        return install_wanted(wanted, python, installer, folder, progress)


def _own_options(values: dict[str, Any], python: str) -> OwnEnvironmentOptions:
    constraints = vendor_constraints(arch_here(), None, (), (), values["constraints"])
    return OwnEnvironmentOptions(
        python=python, constraints=tuple(constraints), force=values["force"], update=values["update"]
    )


def _words_given(values: dict[str, Any]) -> list[str]:
    """Options that a second command for the same zoo needs, too."""
    one = {"--base": values["base"], "--python": values["python"], "--index-url": values["index_url"]}
    one["--installer"] = values["installer"]
    many = {"--index": values["indexes"], "--find-links": values["find_links"]}
    pairs = [*one.items(), *((option, value) for option, each in many.items() for value in each)]
    return [word for option, value in pairs if value for word in (option, str(value))]
