"""tests/plugins and plugins/runtimes, installed as a user would install a package: with pip, into a folder of its own, without a network."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from benchwright.core.registry import Registry

SOURCE = Path(__file__).parents[1] / "plugins"
RUNTIMES_SOURCE = Path(__file__).parents[2] / "plugins" / "runtimes"
_PROJECT = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]
PACKAGE = "benchwright_test_plugins"
# The name that the package adds to each entry-point group.
ADDED = {group: next(iter(names)) for group, names in _PROJECT["entry-points"].items()}
# The runtimes of plugins/runtimes.
RUNTIMES: list[str] = [
    name
    for names in tomllib.loads((RUNTIMES_SOURCE / "pyproject.toml").read_text())["project"]["entry-points"].values()
    for name in names
]


def install_plugins(folder: Path) -> Path:
    """The folder that is to be put on Python's path."""
    words = ["install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", *words, str(SOURCE), str(RUNTIMES_SOURCE)], check=True)
    return folder


def variants(registry: Registry[Any]) -> list[str]:
    """The built-in variants of a seam and the one from outside, which needs the fixture `plugins`."""
    return [*registry.built_in, ADDED[registry.group]]
