"""`install --zoo NAME --own-env`: an environment for one zoo, below the base folder."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from benchwright.core.benchmark import UNPINNED
from benchwright.core.errors import CannotMeasure, Interrupted, InvalidInput
from benchwright.environments.builder import EnvironmentBuilder
from benchwright.environments.environment import EnvironmentFolders, Installed
from benchwright.environments.groups import InstallGroup, Recipe
from benchwright.environments.installers import Pip, Uv
from benchwright.environments.requirement_files import read_requirements
from benchwright.environments.tools import Stopped, Tools
from benchwright.executors.interruption import stops_on_signals
from benchwright.executors.observer import Observer
from benchwright.kinds.models.zoo.catalogue import forget_listings, listed_zoos
from benchwright.kinds.models.zoo.interpreters import forget_own_environments
from benchwright.kinds.models.zoo.trial import environment_of
from benchwright.kinds.models.zoo.wanted import ALWAYS, Wanted, still_missing


class OwnEnvironmentOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`python`: what to make environments from. `constraints`: absolute paths."""

    python: str
    constraints: tuple[str, ...] = ()
    force: bool = False
    update: bool = False


def install_apart(
    wanted: Sequence[Wanted], options: OwnEnvironmentOptions, installer: Uv | Pip, folder: str, observer: Observer
) -> list[Installed]:
    """Each into a separate environment; one whose libraries do not import is not put into use."""
    groups = [_group_of(one, options, folder) for one in wanted]
    folders, tools = EnvironmentFolders(folder), Tools()
    try:
        os.makedirs(folders.store, exist_ok=True)
    except OSError as error:
        raise CannotMeasure(f"{folder}: {error.strerror}; choose another folder with --base") from None
    zoos = {group.name: one for group, one in zip(groups, wanted, strict=True)}
    builder = EnvironmentBuilder(
        folders,
        installer,
        tools,
        observer.on_step,
        force=options.force,
        newest=options.update,
        check=lambda group, python: _why_useless(zoos[group.name], python),
    )
    with stops_on_signals(tools.stop):
        try:
            return [_installed(builder, group, observer) for group in groups]
        except Stopped:
            raise Interrupted("interrupted; existing environments are unchanged; run the same command again") from None
        finally:
            forget_listings()
            forget_own_environments()


def _installed(builder: EnvironmentBuilder, group: InstallGroup, observer: Observer) -> Installed:
    done = builder.bring_about(group)
    observer.on_step_done(group.name, "failed" if done.status == "failed" else "")
    for note in done.notes:
        observer.on_note(note)
    return done


def _group_of(one: Wanted, options: OwnEnvironmentOptions, folder: str) -> InstallGroup:
    """Of the torch that models are otherwise measured with, unless the constraints say which."""
    if one.zoo is None:
        raise InvalidInput(
            f"'{one.name}' is a corpus of scripts, not a zoo",
            where="--own-env",
            remedy="make an environment, and name its interpreter with --python, here and when you run it",
        )
    files = [file for file in map(read_requirements, options.constraints) if not file.is_empty]
    torch = listed_zoos(options.python)[one.zoo].torch.partition("+")[
        0
    ]  # whatever build the package indexes have of it
    lines = (f"torch=={torch}",) if torch and not any("torch" in file.packages for file in files) else ()
    return InstallGroup(
        name=one.zoo,
        variant=UNPINNED,
        files=(),
        recipe=Recipe(
            requirements=(),
            added=(*ALWAYS, *one.words),
            constraints=(*lines, *(file.digest for file in files)),
            python=os.path.realpath(options.python),
            machine=os.uname().machine,
        ),
        constraint_files=options.constraints,
        constraints=lines,
        python=options.python,
        folder=folder,
    )


def _why_useless(one: Wanted, python: str) -> str | None:
    """Why its models cannot be measured in the environment just made; None if they can."""
    forget_listings()
    broken = [(name, why) for name, why in environment_of(python).libraries.items() if why]
    if broken:
        return f"{broken[0][0]} does not import ({broken[0][1]})"
    try:
        return still_missing(one, python)
    except CannotMeasure as error:  # a zoo of a plug-in, which its packages do not bring
        return str(error)
