"""Questions to another interpreter: it finds the libraries that a launch with the same $PYTHONPATH would."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from benchwright.kinds.models.zoo.catalogue import forget_listings, listed_zoos
from benchwright.kinds.runtime_names import runtimes_named


@pytest.fixture
def other_python(tmp_path: Path) -> str:
    """Another interpreter than ours."""
    path = tmp_path / "python"
    path.symlink_to(os.path.realpath(sys.executable))
    return str(path)


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the user's $PYTHONPATH."""
    folder = tmp_path / "library"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder))
    forget_listings()
    return folder


def install(folder: Path, name: str, version: str, entry_points: str = "") -> None:
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(entry_points)


def test_a_listed_library_is_the_one_on_the_users_path(library: Path, other_python: str) -> None:
    install(library, "timm", "98.7")
    package = library / "timm"
    package.mkdir()
    (package / "__init__.py").write_text("")
    assert listed_zoos(other_python, ["timm"])["timm"].version == "98.7"


def test_a_runtime_added_by_a_package_on_the_users_path_is_known(library: Path, other_python: str) -> None:
    install(library, "extra", "1", "[benchmodels.runtimes]\nspecial = special:Special\n")
    (library / "special.py").write_text("class Special:\n    name = 'special'\n    aliases = ()\n")
    assert runtimes_named(["special"], other_python) == ("special",)


def test_our_own_packages_come_before_those_on_the_users_path(library: Path, other_python: str) -> None:
    (library / "benchmodels.py").write_text("raise SystemExit('not ours')")
    assert "timm" in listed_zoos(other_python, ["timm"])
