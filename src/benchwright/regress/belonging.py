"""Whether what a user names on the command line belongs to the revision that is measured.

A worktree has only what is committed. A program, script or package that is missing there would be taken from the user's
working tree on both sides, and the comparison would say nothing about them.
"""

from __future__ import annotations

import os

from benchwright.core.errors import InvalidInput
from benchwright.options.table import Options
from benchwright.regress.building.environment import has_editable_install, inherited_python
from benchwright.regress.repository import CommandFailed, SourceRepository, call_git
from benchwright.regress.variation import Variation

_CODE = (".py", ".sh", ".yaml", ".yml", ".cfg", ".ini", ".json", ".pl", ".rb", ".js", ".R", ".jl")


def refuse_shared_package(repository: SourceRepository, python: str | None) -> None:
    """InvalidInput if the interpreter imports a package from the working tree, whatever commit is measured."""
    if has_editable_install(inherited_python(python), repository.root):
        raise InvalidInput(
            "a package of this repository is installed in editable mode: both sides would import the working tree's",
            where="--build",
            remedy="build each side with --build 'pip install -e .'; or --build true, if the target does not import it",
        )


def kept_words(options: Options, variation: Variation, repository: SourceRepository) -> dict[str, str]:
    """Words of the command that name files which git ignores, such as data: with the path of the only one there is. InvalidInput for a
    program, script or target that the revision does not have."""
    if variation.folder is None:
        return {}
    root, stands_in = variation.folder
    kept: dict[str, str] = {}
    targets, here = options.targets, os.getcwd()
    for number, word in enumerate((*targets, *options.command)):
        folder = here if number < len(targets) else os.path.join(here, options.cwd or "")
        path = os.path.normpath(os.path.join(folder, word.partition("::")[0]))
        inside = path.startswith(f"{root}/") and os.path.exists(path)
        if not inside or os.path.exists(f"{stands_in}/{path.removeprefix(f'{root}/')}"):
            continue
        is_program = number == len(targets)
        if is_program and os.sep not in word:
            continue  # found on the PATH
        if is_program and os.path.exists(f"{os.path.dirname(os.path.dirname(path))}/pyvenv.cfg"):
            kept[word] = path
        elif is_program and _is_ignored(repository, path):
            raise InvalidInput(
                f"git ignores {word}: both sides would run the same program",
                where=f"--{variation.side}",
                remedy="build it on each side, such as --build make; or compare two files with bin:",
            )
        elif number <= len(targets) or path.endswith(_CODE) or not _is_ignored(repository, path):
            raise InvalidInput(
                f"{variation.revision} has no {word}",
                where=f"--{variation.side}",
                remedy="keep it outside of the repository and name it by its path, or copy it with --build 'cp …'",
            )
        else:
            kept[word] = path
    return kept


def _is_ignored(repository: SourceRepository, path: str) -> bool:
    if repository.kind != "git":
        return True  # it is not in the other tree, and there is no quick way to ask
    try:
        call_git("check-ignore", "--quiet", "--", path, folder=repository.root)
    except CommandFailed:
        return False
    return True
