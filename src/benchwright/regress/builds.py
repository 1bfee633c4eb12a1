"""Builds of revisions: a worktree for each, built by the user's command, and kept until the cache is cleaned.

<cache>/<repository>-<id>/<commit>-<recipe>.lock   held while it is built
<cache>/<repository>-<id>/<commit>-<recipe>/       source/ (the worktree), venv/, build.log
                                          …/build.json       written last: without it there is no build
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from benchwright.artifacts.holds import Holds
from benchwright.core.errors import CannotMeasure, Interrupted, InvalidInput
from benchwright.core.stored_file import Unreadable, read_stored_json
from benchwright.core.whole_file import unwritable, write_own
from benchwright.environments.locks import locked
from benchwright.environments.tools import Stopped, Tools
from benchwright.executors.observer import Observer
from benchwright.regress.repository import Commit, SourceRepository

MARKER = "build.json"
LOG = "build.log"
_MOST_LINES = 12  # of a failed build's log, in the message
_IN_USE = Holds()  # whatever this process built or found, as long as it lives: `cache clean` keeps it
# What the same command may build otherwise.
_COMPILING = re.compile(
    r"CC|CXX|CUDAHOSTCXX|\w*FLAGS|CMAKE_\w+|CUDA_HOME|CUDA_PATH|TORCH_CUDA_ARCH_LIST|SETUPTOOLS_SCM_\w+"
)


class RevisionNotBuilt(CannotMeasure):
    """A build failed. `log`: all it printed; `last_lines`: the end of that."""

    def __init__(self, what: str, log: Path | None, last_lines: tuple[str, ...] = ()) -> None:
        shown = "".join(f"\n    {line}" for line in last_lines)
        super().__init__(f"{what}{f'; its output is in {log}' if log else ''}{shown}")
        self.what = what
        self.log = log
        self.last_lines = last_lines


class BuildRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """How a commit is built: by `command`, or by the build.sh of `framework` for `platform`; or only checked out."""

    command: str | None = None  # a shell line, run in the worktree
    python: str | None = None  # whose packages the build's environment inherits; None: those of `python`
    frameworks_dir: str | None = None
    framework: str | None = None
    platform: str | None = None
    exec_dir: str | None = None  # where build.sh puts its programs

    def identity(self) -> str:
        """Changes when the same commit would be built otherwise."""
        parts = [self.command or "", self.python or "", self.framework or "", self.platform or "", self.exec_dir or ""]
        parts += [f"{name}={value}" for name, value in sorted(os.environ.items()) if _COMPILING.fullmatch(name)]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:10]


class BuiltRevision(msgspec.Struct, frozen=True, kw_only=True):
    """`folder`: the worktree. `path`: what to put before PATH; `env`: variables to set for what is measured."""

    commit: Commit | None
    folder: str | None = None
    python: str | None = None
    path: tuple[str, ...] = ()
    env: dict[str, str] = {}
    programs: dict[str, str] = {}
    reused: bool = False
    seconds: float = 0.0
    log: str | None = None

    @property
    def needed(self) -> list[str]:
        """Files and folders without which it is no build."""
        return [*self.programs.values(), *(place for place in (self.folder, self.python) if place)]


class BuildMarker(msgspec.Struct, frozen=True, kw_only=True):
    """build.json: what was built."""

    repository: str
    built: BuiltRevision
    command: str | None
    when: datetime
    packages: tuple[str, ...] = ()


def place_of(repository: SourceRepository, commit: Commit, recipe: BuildRecipe, cache: Path) -> Path:
    root = os.path.realpath(repository.root)
    repository_id = hashlib.sha256(os.fsencode(root)).hexdigest()[:8]
    name = re.sub(r"[^\w.-]", "-", os.path.basename(root)) or "repository"
    return cache / f"{name}-{repository_id}" / f"{commit.hash[:16]}-{recipe.identity()}"


def now() -> datetime:
    return datetime.now(UTC)


class Making:
    """One build being made, at the place where it is used: what is built often holds its own path."""

    def __init__(self, folder: Path, name: str, observer: Observer, tools: Tools, *, hidden: bool = False) -> None:
        self.folder = folder
        self.name = name
        self.observer = observer
        self.tools = tools
        self.log = folder / LOG
        self._lock_path = folder.with_name(f"{'.' if hidden else ''}{folder.name}.lock")
        self._lock = -1

    def say(self, what: str) -> None:
        self.observer.on_step(self.name, what, str(self.log))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While no other process builds the same."""
        try:
            self._lock_path.parent.mkdir(parents=True, exist_ok=True)
            with locked(
                str(self._lock_path),
                waiting=lambda: self.say("waiting for another build of it"),
                stopped=self.tools.is_stopped,
            ) as self._lock:
                try:
                    yield
                finally:
                    fcntl.flock(self._lock, fcntl.LOCK_UN)  # a daemon that the build started may have inherited it
        except (InterruptedError, Stopped):
            raise Interrupted("stopped while building; what is built is kept") from None
        except OSError as error:
            raise unwritable(error.filename or self.folder, error) from error
        finally:
            self.observer.on_step_done(self.name)

    def known(self) -> BuiltRevision | None:
        """An earlier build, if it is complete and still there."""
        marker = read_marker(self.folder)
        if marker is None:
            return None
        if not all(os.path.exists(place) for place in marker.built.needed):
            return None
        os.utime(self.folder)  # used now
        _IN_USE.hold(self.folder)
        return msgspec.structs.replace(marker.built, reused=True, seconds=0.0)

    @contextmanager
    def anew(self, repository: SourceRepository | None = None) -> Iterator[None]:
        """Without what a killed or failed build left; on an error its log stays, and nothing else."""
        clear(self.folder)
        self.folder.mkdir(parents=True)
        try:
            yield
        except BaseException:
            clear(self.folder, but=LOG)
            if repository is not None:
                repository.forget_worktrees()
            raise

    def run(self, argv: list[str], *, cwd: Path, env: Mapping[str, str], path: tuple[str, ...] = ()) -> None:
        """One step of the build; RevisionNotBuilt if it fails."""
        variables = {**os.environ, **env}
        variables["PATH"] = os.pathsep.join([*path, variables.get("PATH", os.defpath)])
        try:
            code = self.tools.run(argv, log=str(self.log), env=variables, cwd=str(cwd), keep_open=(self._lock,))
        except BaseException:
            self.tools.stop()
            raise
        if code != 0:
            ended = f"exit code {code}" if code > 0 else f"signal {-code}"
            raise RevisionNotBuilt(f"{self.name} could not be built ({ended})", self.log, last_lines(self.log))

    def finish(self, marker: BuildMarker) -> None:
        _IN_USE.hold(self.folder)
        write_own(self.folder / MARKER, msgspec.json.format(msgspec.json.encode(marker), indent=1))


def read_marker(folder: Path) -> BuildMarker | None:
    try:
        return read_stored_json(folder / MARKER, BuildMarker)
    except (OSError, Unreadable):
        return None


def clear(folder: Path, but: str | None = None) -> None:
    """Removes a build, the marker first: what is half removed is no build."""
    (folder / MARKER).unlink(missing_ok=True)
    for entry in list(folder.iterdir()) if folder.is_dir() else ():
        if entry.name != but:
            _remove(entry)
    if but is None and folder.is_dir():
        folder.rmdir()


def _remove(entry: Path) -> None:
    if entry.is_dir() and not entry.is_symlink():
        for place, folders, _ in os.walk(entry):  # Go's module cache and others make folders read-only
            for name in folders:
                path = os.path.join(place, name)
                if not os.path.islink(path):
                    os.chmod(path, 0o700)
        shutil.rmtree(entry)
    else:
        entry.unlink(missing_ok=True)


def last_lines(log: Path) -> tuple[str, ...]:
    """The end of a log, without empty lines and control characters."""
    try:
        with log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 16_384))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ()
    lines = [re.sub(r"\x1b\[[\d;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]", "", line).rstrip() for line in text.split("\n")]
    return tuple([line[:200] for line in lines if line and not line.startswith("$ ")][-_MOST_LINES:])


def checked_recipe(recipe: BuildRecipe) -> BuildRecipe:
    """InvalidInput if the recipe cannot be followed, before any time is spent on it."""
    if recipe.command is not None and not recipe.command.strip():
        raise InvalidInput("the build command is empty", where="--build", remedy="such as --build 'pip install -e .'")
    if recipe.command is not None and recipe.framework is not None:
        raise InvalidInput("gives another way to build than --build", where="--framework", remedy="drop one of them")
    return recipe


# Builds by a framework's build.sh.
#
# <exec_dir>/<framework>/<platform>/<year>/<month>/<day>/<commit>/<framework>_benchmark   what build.sh makes
#                                                         …/.<commit>.lock, .<commit>.unfinished   while it does


def destination_of(commit: Commit, recipe: BuildRecipe) -> Path:
    """Where build.sh puts its program; the day is the commit's, in UTC."""
    exec_dir, framework, platform = recipe.exec_dir or "", recipe.framework or "", recipe.platform or ""
    day = (str(commit.time.year), str(commit.time.month), str(commit.time.day))
    return Path(os.path.abspath(exec_dir), framework, platform, *day, commit.hash, f"{framework}_benchmark")


def build_script(recipe: BuildRecipe) -> Path:
    """The platform's own, else the framework's; InvalidInput if there is none."""
    folder = Path(os.path.abspath(recipe.frameworks_dir or ""), recipe.framework or "")
    for place in (folder / (recipe.platform or "") / "build.sh", folder / "build.sh"):
        if place.is_file():
            return place
    raise InvalidInput(
        f"there is no build.sh for {recipe.framework} on {recipe.platform}",
        where=f"--frameworks-dir {recipe.frameworks_dir}",
        remedy=f"add {folder / (recipe.platform or '') / 'build.sh'}",
    )


def build_by_script(
    repository: SourceRepository, commit: Commit, recipe: BuildRecipe, cache: Path, observer: Observer, tools: Tools
) -> BuiltRevision:
    """An existing program is used as it is, whoever built it."""
    destination = destination_of(commit, recipe)
    making = Making(destination.parent, commit.short, observer, tools, hidden=True)
    unfinished = destination.parent.with_name(f".{commit.hash}.unfinished")
    with making.alone():
        if destination.exists() and not unfinished.exists():
            return _result(commit, destination, None, reused=True)
        began = time.monotonic()
        script = build_script(recipe)
        checkout = Making(place_of(repository, commit, recipe, cache), commit.short, observer, tools)
        with checkout.alone(), checkout.anew(repository), _marked(unfinished, destination.parent):
            checkout.say("checking it out")
            source = repository.worktree(commit, checkout.folder / "source")
            checkout.say(f"building with {script}")
            checkout.run(["sh", str(script), str(source), str(destination)], cwd=source, env={})
            if not destination.exists():
                what = f"{commit.short} could not be built: {script} made no {destination}"
                raise RevisionNotBuilt(what, checkout.log, last_lines(checkout.log))
            clear(source)  # all that is used is at the destination
            repository.forget_worktrees()
        return _result(commit, destination, checkout.log, seconds=round(time.monotonic() - began, 3))


@contextmanager
def _marked(unfinished: Path, folder: Path) -> Iterator[None]:
    """While the mark is there, what is in the folder is no build; what was left in it goes first."""
    if unfinished.exists():
        clear(folder)
    unfinished.touch()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        clear(folder)
        unfinished.unlink(missing_ok=True)
        raise
    unfinished.unlink(missing_ok=True)


def _result(
    commit: Commit, destination: Path, log: Path | None, *, reused: bool = False, seconds: float = 0.0
) -> BuiltRevision:
    """`program` is the file that build.sh was to make; other files beside it go by their own names."""
    beside = sorted(entry for entry in destination.parent.iterdir() if not entry.name.startswith("."))
    programs = {"program": str(destination)} | {p.name: str(p) for p in beside if p != destination}
    shown = str(log) if log else None
    return BuiltRevision(commit=commit, programs=programs, reused=reused, seconds=seconds, log=shown)
