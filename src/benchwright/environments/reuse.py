"""Whether the environment that is there will do."""

from __future__ import annotations

import msgspec

from benchwright.environments.built import Built, EnvironmentFolders, read_built, why_broken
from benchwright.environments.groups import Group, Recipe


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What a group's link leads to, and `why` that will not do; None: it will."""

    folder: str | None = None
    built: Built | None = None
    why: str | None = None


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a group. `status`: reused, built or failed; a failed one may still have its old environment."""

    name: str
    status: str
    path: str
    python: str | None = None
    seconds: float = 0.0
    packages: dict[str, str] = {}
    detail: str | None = None  # why it failed, or what else there is to say
    package: str | None = None  # the one to blame
    log: str | None = None
    notes: tuple[str, ...] = ()


def standing(group: Group, folders: EnvironmentFolders) -> Standing:
    """A few looks at files; nothing is started."""
    folder = folders.current(group.name)
    if folder is None:
        return Standing(why="there is none yet")
    built = read_built(folder)
    if built is None:
        return Standing(folder=folder, why="it was never finished")
    why = _difference(built.recipe, group) or why_broken(folder, built)
    return Standing(folder=folder, built=built, why=why)


def reused(group: Group, folders: EnvironmentFolders, found: Standing) -> Installed:
    assert found.built is not None
    return Installed(
        name=group.name,
        status="reused",
        path=folders.link(group.name),
        python=found.built.python,
        packages=found.built.packages,
        notes=group.notes,
    )


def finished_before(group: Group, folders: EnvironmentFolders) -> str | None:
    """An environment of exactly this recipe that the link does not lead to: the suite was changed and changed back."""
    for folder in reversed(folders.all_of(group.name)):
        built = read_built(folder)
        if built is not None and built.recipe == group.recipe and why_broken(folder, built) is None:
            return folder
    return None


def _difference(made: Recipe, group: Group) -> str | None:
    """What changed since, in words. Members that are not asked for now may be in it, if the suite still has them."""
    wanted = group.recipe
    lacking = set(wanted.requirements) - set(made.requirements)
    surplus = set(made.requirements) - set(wanted.requirements) - group.also
    if lacking or surplus or made.added != wanted.added:
        return "its requirements changed"
    if made.constraints != wanted.constraints:
        return "its constraints changed"
    if made.pip_args != wanted.pip_args:
        return "the arguments for pip changed"
    if (made.python, made.machine) != (wanted.python, wanted.machine):
        return f"it is for {made.python} on {made.machine}"
    return None
