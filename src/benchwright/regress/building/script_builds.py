"""Builds by a framework's build.sh, as FAI-PEP's repo driver makes them.

<exec_dir>/<framework>/<platform>/<year>/<month>/<day>/<commit>/<framework>_benchmark   what build.sh makes
                                                        …/.<commit>.lock, .<commit>.unfinished   while it does
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchwright.core.errors import InvalidInput
from benchwright.environments.tools import Tools
from benchwright.executors.observer import Observer
from benchwright.regress.builds import BuildRecipe, BuiltRevision, Making, RevisionNotBuilt, clear, last_lines, place_of
from benchwright.regress.repository import Commit, SourceRepository


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
    """A program that is there already is used as it is, whoever built it."""
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
    """`program` is what build.sh was asked for; whatever lies beside it has its own name."""
    beside = sorted(entry for entry in destination.parent.iterdir() if not entry.name.startswith("."))
    programs = {"program": str(destination)} | {p.name: str(p) for p in beside if p != destination}
    shown = str(log) if log else None
    return BuiltRevision(commit=commit, programs=programs, reused=reused, seconds=seconds, log=shown)
