"""Benchmark folders that come from git."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import git

from benchwright.core.benchmark import BenchmarkFolder
from benchwright.environments.tools import Tools
from benchwright.kinds.suite.setup.install import CannotClone, clone


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "origin"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "first")
    git(folder, "branch", "stable")
    return folder


def commit(folder: Path, text: str) -> None:
    (folder / "main.py").write_text(f"# {text}\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", text)


def folder_of(place: Path, repository: Path, branch: str | None = None) -> BenchmarkFolder:
    return BenchmarkFolder(path=str(place / "bench-1234"), group="g", git=repository.as_uri(), branch=branch)


def test_a_definition_is_cloned_once_and_anew_when_asked(tmp_path: Path, repository: Path) -> None:
    folder = folder_of(tmp_path / "clones", repository)
    main = Path(folder.path) / "main.py"
    assert clone(folder, Tools()) == git(repository, "rev-parse", "HEAD")
    commit(repository, "second")
    assert clone(folder, Tools()) is None
    assert main.read_text() == "# first\n"
    clone(folder, Tools(), anew=True)
    assert main.read_text() == "# second\n"
    assert sorted(p.name for p in main.parents[1].iterdir()) == ["bench-1234", "bench-1234.lock", "bench-1234.log"]


def test_a_branch_can_be_named(tmp_path: Path, repository: Path) -> None:
    commit(repository, "second")
    folder = folder_of(tmp_path / "clones", repository, "stable")
    clone(folder, Tools())
    assert (Path(folder.path) / "main.py").read_text() == "# first\n"


def test_what_git_says_is_told_and_nothing_is_left(tmp_path: Path, repository: Path) -> None:
    folder = folder_of(tmp_path / "clones", repository, "nowhere")
    with pytest.raises(CannotClone, match="nowhere"):
        clone(folder, Tools())
    assert not Path(folder.path).exists()
    assert not Path(f"{folder.path}.part").exists()
