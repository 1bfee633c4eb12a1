"""The command lines of uv, or of venv and pip if there is no uv."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import PathFinder

from benchwright.core.errors import InvalidInput
from benchwright.environments.package_indexes import PackageIndexes

NAMES = ("uv", "pip")


class Uv:
    """`program`: the path of uv. Methods return an argv, or the variables to run it with; Pip has the same ones."""

    name = "uv"

    def __init__(self, program: str, indexes: PackageIndexes) -> None:
        self.program = program
        self.indexes = indexes

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        base = _neutral(inherited)
        return {**base, **self.indexes.for_uv(base), "UV_NO_PROGRESS": "1"}

    def create(self, folder: str, python: str | None) -> list[str]:
        """Makes an empty environment."""
        return [self.program, "venv", "--no-project", "--python", python or sys.executable, folder]

    def install(self, python: str, wanted: Sequence[str], *, newest: bool = False) -> list[str]:
        """Installs `wanted` (pip's words: -r FILE, -c FILE, names) for the interpreter `python`."""
        fresh = ["--upgrade", "--refresh"] if newest else []
        return [self.program, "pip", "install", "--python", python, *self.indexes.uv_options, *fresh, *wanted]

    def uninstall(self, python: str, names: Sequence[str]) -> list[str]:
        return [self.program, "pip", "uninstall", "--python", python, *names]

    def would_install(self, python: str, wanted: Sequence[str]) -> list[str]:
        """Prints what `install` of the newest would change, and changes nothing."""
        return [*self.install(python, (), newest=True), "--dry-run", *wanted]

    def compile(self, sources: Sequence[str], output: str, python: str | None, *, hashes: bool) -> list[str]:
        """Writes exact versions for `sources` (pip's words) to `output`; keeps versions already there."""
        more = ["--generate-hashes"] if hashes else []
        options = ["--no-header", "--python", python or sys.executable, *self.indexes.uv_options, *more]
        return [self.program, "pip", "compile", *options, "--output-file", output, *sources]


class Pip:
    """The standard library's venv, with benchwright's own pip, or the one in the new environment."""

    name = "pip"

    def __init__(self, indexes: PackageIndexes, *, own_pip: bool | None = None) -> None:
        self.indexes = indexes
        self.own_pip = PathFinder.find_spec("pip") is not None if own_pip is None else own_pip

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        base = _neutral(inherited)
        return {**base, **self.indexes.for_pip(), "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}

    def create(self, folder: str, python: str | None) -> list[str]:
        return [_interpreter(python), "-m", "venv", *(["--without-pip"] if self.own_pip else []), folder]

    def install(self, python: str, wanted: Sequence[str], *, newest: bool = False) -> list[str]:
        fresh = ["--upgrade"] if newest else []
        return [*self._pip(python), "install", "--progress-bar=off", *fresh, *wanted]

    def uninstall(self, python: str, names: Sequence[str]) -> list[str]:
        return [*self._pip(python), "uninstall", "--yes", *names]

    def _pip(self, python: str) -> list[str]:
        return [sys.executable, "-m", "pip", "--python", python] if self.own_pip else [python, "-m", "pip"]

    def report(self, sources: Sequence[str], output: str, python: str | None) -> list[str]:
        """Writes what would be installed for `sources` to `output`, as JSON."""
        words = ["install", "--dry-run", "--ignore-installed", "--progress-bar=off", "--report", output]
        return [_interpreter(python), "-m", "pip", *words, *sources]


def choose_installer(name: str | None, indexes: PackageIndexes) -> Uv | Pip:
    """`name` None: uv if installed, else pip."""
    program = None if name == "pip" else find_uv()
    if program is not None:
        return Uv(program, indexes)
    if name == "uv":
        raise InvalidInput("uv is not installed", where="--installer", remedy="pip install uv, or use --installer pip")
    return Pip(indexes)


def find_uv() -> str | None:
    """The one installed with benchwright, else the one on the PATH."""
    try:
        import uv

        return os.fspath(uv.find_uv_bin())
    except (ImportError, FileNotFoundError):
        return shutil.which("uv")


def _interpreter(python: str | None) -> str:
    """A path, or a version such as 3.12 to look up on the PATH."""
    if python is None:
        return sys.executable
    if os.sep in python:
        return python
    found = shutil.which(f"python{python}") or shutil.which(python)
    if found is None:
        raise InvalidInput(f"Python {python} was not found", where="venv.python", remedy="install it, or give its path")
    return found


def _neutral(inherited: Mapping[str, str]) -> dict[str, str]:
    """Without variables that would point an installer to another environment."""
    hidden = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONHOME", "PYTHONPATH", "UV_SYSTEM_PYTHON", "UV_PYTHON")
    return {**{k: v for k, v in inherited.items() if k not in hidden}, "NO_COLOR": "1"}
