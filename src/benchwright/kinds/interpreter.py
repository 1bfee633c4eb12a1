"""The interpreter for a user's scripts."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchwright.agent.supervise.program_environment import python_path
from benchwright.artifacts.probe_folder import probe_folder
from benchwright.core.errors import InvalidInput

if TYPE_CHECKING:
    from subprocess import CompletedProcess

_FIND_MODULE = """
import sys
from importlib.util import find_spec
spec = find_spec(sys.argv[1])
if spec is not None and spec.submodule_search_locations is not None:
    spec = find_spec(sys.argv[1] + ".__main__")
if spec is None or not spec.origin or not spec.origin.endswith(".py"):
    sys.exit("no module that can be run")
print(spec.origin)
"""
_PACKAGES = ("benchprobe", "benchmodels")  # that an interpreter gets


def default_python() -> str:
    """The interpreter a shell would start for `python`, since that is where the user's packages are."""
    return shutil.which("python") or shutil.which("python3") or sys.executable


def check_starts(python: str) -> None:
    """InvalidInput if `python` is a script, such as pyenv's shims, that finds no interpreter to start."""
    import subprocess

    path = shutil.which(python)
    try:
        with open(path or "", "rb") as file:
            if file.read(2) != b"#!":
                return
        tried = subprocess.run([path or python, "-c", ""], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return  # said when it is started
    if tried.returncode == 0:
        return
    message = " ".join(line.strip() for line in tried.stderr.partition("\nNote:")[0].splitlines() if line.strip())
    remedy = "give the path of an interpreter, such as ~/.pyenv/versions/3.11.9/bin/python, or of an environment's bin/python"
    raise InvalidInput(
        f"{path} starts no Python: {message or 'no reason given'}", where=f"--python {python}", remedy=remedy
    )


def ask(python: str, module: str, words: Sequence[str], *, patience_s: float) -> CompletedProcess[str]:
    """Runs `module` of benchmodels in `python`, with the libraries that a launch would find: our packages, then $PYTHONPATH."""
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory(prefix="benchwright-") as folder:
        ours = str(probe_folder(Path(folder), packages=_PACKAGES))
        return subprocess.run(
            [python, "-m", module, *words],
            env={**os.environ, "PYTHONPATH": python_path(ours, os.environ)},
            capture_output=True,
            text=True,
            timeout=patience_s,
            stdin=subprocess.DEVNULL,
        )


def file_of_module(name: str, python: str | None, cwd: str | None) -> str:
    """The file that `python -m name` runs; InvalidInput if there is none. Only its parent packages are imported."""
    import subprocess

    found = subprocess.run(
        [python or default_python(), "-c", _FIND_MODULE, name], cwd=cwd, capture_output=True, text=True, timeout=60
    )
    path = found.stdout.strip().splitlines()[-1:]
    if found.returncode != 0 or not path:
        why = found.stderr.strip().splitlines()[-1:] or ["no such module"]
        remedy = "name what python -m can run from this folder; a package needs a __main__.py"
        raise InvalidInput(why[0], where=f"-m {name}", remedy=remedy)
    return path[0]
