"""Builds a commit: by the user's command in a worktree with its own environment, or by a framework's build.sh."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from benchwright.environments.tools import Tools
from benchwright.executors.observer import Observer
from benchwright.regress.build_environment import inherited_python, make_environment, variables_of
from benchwright.regress.builds import BuildMarker, BuildRecipe, BuiltRevision, Making, build_by_script, now, place_of
from benchwright.regress.repository import Commit, SourceRepository


def build(
    repository: SourceRepository,
    commit: Commit,
    recipe: BuildRecipe,
    cache: Path,
    observer: Observer | None = None,
    tools: Tools | None = None,
) -> BuiltRevision:
    """The commit, built; from the cache if it was built in the same way before. RevisionNotBuilt if that fails."""
    if recipe.framework is not None:
        return build_by_script(repository, commit, recipe, cache, observer or Observer(), tools or Tools())
    making = Making(place_of(repository, commit, recipe, cache), commit.short, observer or Observer(), tools or Tools())
    with making.alone():
        if (known := making.known()) is not None:
            return known
        began = time.monotonic()
        with making.anew(repository):
            making.say("checking it out")
            source = repository.worktree(commit, making.folder / "source")
            built = _built(repository, commit, recipe, making, source)
            built = msgspec.structs.replace(built, seconds=round(time.monotonic() - began, 3))
            making.finish(BuildMarker(repository=str(repository.root), built=built, command=recipe.command, when=now()))
        return built


def _built(
    repository: SourceRepository, commit: Commit, recipe: BuildRecipe, making: Making, source: Path
) -> BuiltRevision:
    moved = moved_variables(os.environ, repository.root, source)
    if recipe.command is None:
        return BuiltRevision(commit=commit, folder=str(source), env=moved)
    making.say("making its environment")
    venv = making.folder / "venv"
    python = make_environment(venv, inherited_python(recipe.python), repository.root)
    changes = {**moved, **variables_of(venv)}
    path = (str(venv / "bin"),)
    making.say(f"building: {recipe.command}")
    making.run(["sh", "-c", recipe.command], cwd=source, env=changes, path=path)
    log = str(making.log)
    return BuiltRevision(commit=commit, folder=str(source), python=str(python), path=path, env=changes, log=log)


def moved_variables(environment: Mapping[str, str], root: Path, source: Path) -> dict[str, str]:
    """PYTHONPATH with entries in the user's working tree replaced by the same ones in the worktree, if it has any."""
    old = environment.get("PYTHONPATH", "")
    entries = [_moved(entry, root, source) for entry in old.split(os.pathsep)]
    new = os.pathsep.join(entries)
    return {"PYTHONPATH": new} if new != old else {}


def _moved(path: str, root: Path, source: Path) -> str:
    real, top = os.path.realpath(path), os.path.realpath(root)
    inside = path and (real == top or real.startswith(top + os.sep))
    return os.path.normpath(os.path.join(source, os.path.relpath(real, top))) if inside else path
