"""The interpreter for a user's scripts."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from subprocess import CompletedProcess

_PACKAGES = ("benchprobe", "benchmodels")  # that an interpreter gets


def default_python() -> str:
    """The interpreter a shell would start for `python`, since that is where the user's packages are."""
    return shutil.which("python") or shutil.which("python3") or sys.executable


def ask(python: str, module: str, words: Sequence[str], *, patience_s: float) -> CompletedProcess[str]:
    """What `module` of benchmodels prints in `python`, which finds the libraries that a launch would: our packages, then $PYTHONPATH."""
    import subprocess
    import tempfile

    from benchwright.agent.supervise.program_environment import python_path
    from benchwright.artifacts.probe_folder import probe_folder

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
