"""Existing environments: where they are, what was recorded about them, and whether they still work."""

from __future__ import annotations

import os
import re
import shutil
import time

import msgspec

from benchwright.core.stored_file import Unreadable, read_stored_json
from benchwright.core.whole_file import write_own
from benchwright.environments.groups import InstallGroup, Recipe
from benchwright.environments.requirement_files import normalised

MARKER = ".benchwright.json"  # written last: a folder without it is left from an install that was killed
_FOLDER = ".environments"
_FORMAT = 1


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """The marker of an environment. `entries`: the top level of its site-packages when it was made."""

    format: int = _FORMAT
    group: str
    variant: str
    variant_given: bool = False  # by the command line, whatever the suite says
    recipe: Recipe
    python: str  # its version
    installer: str
    site: str  # relative to the environment
    entries: tuple[str, ...]
    packages: dict[str, str]
    made: float
    seconds: float


class EnvironmentFolders:
    """In `<base>/venv`: links named by install group, and `.environments` with their targets."""

    def __init__(self, venv: str) -> None:
        self.venv = venv
        self.store = os.path.join(venv, _FOLDER)

    def link(self, group: str) -> str:
        return os.path.join(self.venv, group)

    def log(self, group: str) -> str:
        return os.path.join(self.store, f"{group}.log")

    def lock(self, group: str) -> str:
        return os.path.join(self.store, f"{group}.lock")

    def attempt(self, group: str) -> str:
        """Digests of the requirements that the last install failed on, while an older environment stays."""
        return os.path.join(self.store, f"{group}.failed.json")

    def current(self, group: str) -> str | None:
        """The target of the link; None if there is no link."""
        try:
            return os.path.normpath(os.path.join(self.venv, os.readlink(self.link(group))))
        except OSError:
            return None

    def is_foreign(self, group: str) -> bool:
        """Whether something that benchwright did not make has the link's name."""
        link = self.link(group)
        return os.path.exists(link) and not os.path.islink(link)

    def all_of(self, group: str) -> list[str]:
        """Every folder made for `group`, finished or not, oldest first."""
        shape = re.compile(re.escape(group) + r"-[0-9a-f]{12}(-\d+)?")
        try:
            names = [name for name in os.listdir(self.store) if shape.fullmatch(name)]
        except OSError:
            return []
        return sorted((os.path.join(self.store, name) for name in names), key=_made)

    def vacant(self, group: str, identity: str) -> str:
        """A path for a new environment; built in its final place, because its scripts name their interpreter."""
        path = os.path.join(self.store, f"{group}-{identity}")
        number = 2
        while os.path.lexists(path):
            path = os.path.join(self.store, f"{group}-{identity}-{number}")
            number += 1
        return path

    def switch(self, group: str, folder: str) -> None:
        """Points the group's link to `folder`, atomically."""
        aside = os.path.join(self.store, f".{group}.link.{os.getpid()}")
        remove(aside)
        os.symlink(os.path.relpath(folder, self.venv), aside)
        os.replace(aside, self.link(group))

    def remove_unfinished(self, group: str) -> None:
        """Only under the group's lock: an environment that another process is making has no marker yet."""
        for folder in self.all_of(group):
            if not os.path.exists(os.path.join(folder, MARKER)):
                remove(folder)

    def remove_old(self, group: str, keep: list[str]) -> None:
        """All but `keep`. The previous one is kept too: somebody may be using it."""
        for folder in self.all_of(group):
            if folder not in keep:
                remove(folder)


def read_built(folder: str) -> Built | None:
    """None if there is no environment or it is incomplete."""
    try:
        built = read_stored_json(os.path.join(folder, MARKER), Built)
    except (OSError, Unreadable):
        return None
    return built if built.format == _FORMAT else None


def write_built(folder: str, built: Built) -> None:
    """Marks an environment as complete."""
    write_own(os.path.join(folder, MARKER), msgspec.json.encode(built))


def note_attempt(folders: EnvironmentFolders, group: InstallGroup) -> None:
    """Records that installing these requirements failed, so that using the older environment is no surprise."""
    try:
        with open(folders.attempt(group.name), "wb") as file:
            file.write(msgspec.json.encode((*group.recipe.requirements, *group.recipe.local_packages)))
    except OSError:
        pass  # then a run will ask for an install again


def failed_attempt(folders: EnvironmentFolders, group: str) -> set[str]:
    """Digests of the requirements that the last install failed on; empty if it succeeded."""
    try:
        return set(read_stored_json(folders.attempt(group), list[str]))
    except (OSError, Unreadable):
        return set()


def describe(folder: str, group: InstallGroup, *, installer: str, seconds: float) -> Built:
    """The marker for an environment that was just made."""
    site = site_packages(folder)
    entries = sorted(name for name in os.listdir(os.path.join(folder, site)) if name != "__pycache__")
    return Built(
        group=group.name,
        variant=group.variant,
        variant_given=group.variant_given,
        recipe=group.recipe,
        python=_version(folder),
        installer=installer,
        site=site,
        entries=tuple(entries),
        packages=packages_of(entries),
        made=time.time(),
        seconds=round(seconds, 3),
    )


def packages_of(entries: list[str]) -> dict[str, str]:
    """Name → version, from the names of .dist-info folders."""
    found = (entry.removesuffix(".dist-info").rpartition("-") for entry in entries if entry.endswith(".dist-info"))
    return {normalised(name): version for name, _, version in found if name}


def site_packages(folder: str) -> str:
    """Relative to the environment."""
    library = os.path.join(folder, "lib")
    python = next(name for name in sorted(os.listdir(library)) if name.startswith(("python", "pypy")))
    return os.path.join("lib", python, "site-packages")


def why_broken(folder: str, built: Built, *, changed_too: bool = True) -> str | None:
    """In words; None if a few quick checks find nothing wrong.

    `changed_too`: a package whose version has changed counts too; otherwise only a missing one.
    """
    python = os.path.join(folder, "bin", "python")
    if not os.access(python, os.X_OK):
        return f"its interpreter {os.path.realpath(python)} is gone"
    if not os.path.exists(os.path.join(folder, "pyvenv.cfg")):
        return "its pyvenv.cfg is gone"
    try:
        there = set(os.listdir(os.path.join(folder, built.site)))
    except OSError:
        return "its site-packages folder is gone"
    lacking = [e for e in built.entries if e not in there and (changed_too or not e.endswith(".dist-info"))]
    return f"{lacking[0]} is gone from its site-packages" if lacking else None


def remove(path: str) -> None:
    """Removes a folder, a link or a file, if it exists."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.lexists(path):
        os.unlink(path)


def _made(folder: str) -> tuple[float, str]:
    built = read_built(folder)
    return (built.made if built is not None else 0.0, folder)


def _version(folder: str) -> str:
    """From pyvenv.cfg, where uv writes `version_info` and venv `version`."""
    with open(os.path.join(folder, "pyvenv.cfg"), encoding="utf-8") as file:
        pairs = {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in file)}
    return pairs.get("version_info") or pairs.get("version") or "unknown"


class ExistingEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """The target of a group's link, and `why` it cannot be used; None: it can."""

    folder: str | None = None
    built: Built | None = None
    why: str | None = None


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one group. `status`: reused, built or failed; a failed one may still have its old environment."""

    name: str
    status: str
    path: str
    python: str | None = None
    seconds: float = 0.0
    packages: dict[str, str] = {}
    detail: str | None = None  # why it failed, or what else there is to say
    package: str | None = None  # the one that failed
    log: str | None = None
    notes: tuple[str, ...] = ()


def existing_environment(group: InstallGroup, folders: EnvironmentFolders) -> ExistingEnvironment:
    """Looks at a few files; starts nothing."""
    folder = folders.current(group.name)
    if folder is None:
        return ExistingEnvironment(why="there is none yet")
    built = read_built(folder)
    if built is None:
        return ExistingEnvironment(folder=folder, why="it is incomplete")
    why = _difference(built.recipe, group) or why_broken(folder, built)
    return ExistingEnvironment(folder=folder, built=built, why=why)


def reused(group: InstallGroup, folders: EnvironmentFolders, found: ExistingEnvironment) -> Installed:
    assert found.built is not None
    return Installed(
        name=group.name,
        status="reused",
        path=folders.link(group.name),
        python=found.built.python,
        packages=found.built.packages,
        notes=group.notes,
    )


def finished_before(group: InstallGroup, folders: EnvironmentFolders) -> str | None:
    """An earlier environment of exactly this recipe: the suite was changed and changed back."""
    for folder in reversed(folders.all_of(group.name)):
        built = read_built(folder)
        if built is not None and built.recipe == group.recipe and why_broken(folder, built) is None:
            return folder
    return None


def _difference(made: Recipe, group: InstallGroup) -> str | None:
    """The change, in words. The environment may hold members that are not selected now, if the suite still has them."""
    wanted = group.recipe
    lacking = set(wanted.requirements) - set(made.requirements)
    surplus = set(made.requirements) - set(wanted.requirements) - group.also
    if lacking or surplus or made.added != wanted.added:
        return "its requirements changed"
    if made.own_steps != wanted.own_steps:
        return "a benchfile with its own install changed"
    if made.local_packages != wanted.local_packages:
        return "a package that is installed from its source changed"
    if made.constraints != wanted.constraints:
        return "its constraints changed"
    if made.pip_args != wanted.pip_args:
        return "the arguments for pip changed"
    if (made.python, made.machine) != (wanted.python, wanted.machine):
        return f"it is for {made.python} on {made.machine}"
    return None
