"""Which folder the names of a target are relative to, where `--repo-dir` names a repository elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec.structs import replace

from benchwright.core.errors import InvalidInput
from benchwright.options.table import Options
from benchwright.regress.build_environment import has_editable_install, inherited_python
from benchwright.regress.repository import CommandFailed, SourceRepository, call_git
from benchwright.runner.resolve import shipped_file
from benchwright.runner.run import RunOrder
from benchwright.runner.variation import Variation


def in_worktree(root: Path, order: RunOrder) -> RunOrder:
    """Files are looked up from here, then in the repository; commands run in the repository, unless the user stands
    somewhere in it."""
    options = order.options
    top, here = os.path.realpath(root), os.path.realpath(os.getcwd())
    if here == top or here.startswith(top + os.sep):
        return order
    targets = tuple(_found(target, top) for target in options.targets)
    inside = all(os.path.realpath(target).startswith(top + os.sep) for target in targets)
    cwd = top if options.cwd is None and inside else options.cwd
    return replace(order, options=replace(options, targets=targets, cwd=cwd))


def _found(target: str, root: str) -> str:
    """A file that is neither here nor comes with benchwright is one of the commits', if not yet or no longer of the user's
    own tree."""
    file = target.partition("::")[0]
    return target if os.path.exists(file) or shipped_file(target) != target else os.path.join(root, target)


# Whether what a user names on the command line belongs to the revision that is measured.
#
# A worktree has only what is committed. A program, script or package that is missing there would be taken from the user's
# working tree on both sides, and the comparison would say nothing about them.


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
