"""Environments that are there: where they lie, what is written about each, and whether it still works."""

from __future__ import annotations

import os
import re
import time

import msgspec

from benchwright.core.files.stored_file import Unreadable, read_stored_json
from benchwright.core.files.whole_file import write_own
from benchwright.environments.groups import InstallGroup, Recipe
from benchwright.environments.requirement_files import normalised

MARKER = ".benchwright.json"  # written last: without it, a folder is the rest of an install that was killed
_FOLDER = ".environments"
_FORMAT = 1


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """What the marker of an environment says. `entries`: what lay at the top of its site-packages when it was made."""

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
    """Below `<base>/venv`: links named by install group, and beside them `.environments` with what they lead to."""

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
        """Digests of the requirements that the last install could not bring about, while an older environment stays."""
        return os.path.join(self.store, f"{group}.failed.json")

    def current(self, group: str) -> str | None:
        """The folder the link leads to; None if there is no link."""
        try:
            return os.path.normpath(os.path.join(self.venv, os.readlink(self.link(group))))
        except OSError:
            return None

    def is_foreign(self, group: str) -> bool:
        """Something that benchwright did not make has the link's name."""
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
        """A path for a new environment; it is built where it will stay, because its scripts name their interpreter."""
        path = os.path.join(self.store, f"{group}-{identity}")
        number = 2
        while os.path.lexists(path):
            path = os.path.join(self.store, f"{group}-{identity}-{number}")
            number += 1
        return path

    def switch(self, group: str, folder: str) -> None:
        """From now on the group's link leads to `folder`; at no moment is there none."""
        aside = os.path.join(self.store, f".{group}.link.{os.getpid()}")
        remove(aside)
        os.symlink(os.path.relpath(folder, self.venv), aside)
        os.replace(aside, self.link(group))

    def remove_unfinished(self, group: str) -> None:
        """Only under the group's lock: without a marker is also what another process is just making."""
        for folder in self.all_of(group):
            if not os.path.exists(os.path.join(folder, MARKER)):
                remove(folder)

    def remove_old(self, group: str, keep: list[str]) -> None:
        """All but `keep`. The one before stays: somebody may be running in it."""
        for folder in self.all_of(group):
            if folder not in keep:
                remove(folder)


def read_built(folder: str) -> Built | None:
    """None: there is no environment, or it is incomplete."""
    try:
        built = read_stored_json(os.path.join(folder, MARKER), Built)
    except (OSError, Unreadable):
        return None
    return built if built.format == _FORMAT else None


def write_built(folder: str, built: Built) -> None:
    """Marks an environment as complete."""
    write_own(os.path.join(folder, MARKER), msgspec.json.encode(built))


def note_attempt(folders: EnvironmentFolders, group: InstallGroup) -> None:
    """Who installed these requirements in vain knows that the environment from before is older than they are."""
    try:
        with open(folders.attempt(group.name), "wb") as file:
            file.write(msgspec.json.encode(group.recipe.requirements))
    except OSError:
        pass  # then a run will ask for an install once more


def failed_attempt(folders: EnvironmentFolders, group: str) -> set[str]:
    """Digests of the requirements that were last tried in vain; empty if the last install went well."""
    try:
        return set(read_stored_json(folders.attempt(group), list[str]))
    except (OSError, Unreadable):
        return set()


def describe(folder: str, group: InstallGroup, *, installer: str, seconds: float) -> Built:
    """What is to be written about an environment that was just made."""
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
    """In words; None if it works as far as a few looks at it tell.

    `changed_too`: a package of another version than was installed counts too; otherwise only what is missing.
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
    """A folder, a link or a file, if it is there."""
    if os.path.isdir(path) and not os.path.islink(path):
        import shutil

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


def existing_environment(group: InstallGroup, folders: EnvironmentFolders) -> ExistingEnvironment:
    """A few looks at files; nothing is started."""
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
    """An environment of exactly this recipe that the link does not lead to: the suite was changed and changed back."""
    for folder in reversed(folders.all_of(group.name)):
        built = read_built(folder)
        if built is not None and built.recipe == group.recipe and why_broken(folder, built) is None:
            return folder
    return None


def _difference(made: Recipe, group: InstallGroup) -> str | None:
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
