"""Mercurial repositories are read by real hg, where it is installed."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchwright.compat.faipep.hg_repository import HgRepository
from benchwright.core.errors import CannotMeasure, InvalidInput
from benchwright.core.provenance import Repository
from benchwright.regress.builder import build
from benchwright.regress.builds import BuildRecipe
from benchwright.regress.repository import open_repository
from benchwright.runs.provenance import provenance
from benchwright.runs.provenance.provenance import repositories_of

pytestmark = pytest.mark.skipif(shutil.which("hg") is None, reason="Mercurial is not installed")


def hg(folder: Path, *words: str) -> str:
    argv = ["hg", "--config", "ui.username=t", *words]
    return subprocess.run(argv, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    hg(folder, "init")
    for number in (1, 2, 3):
        (folder / "a.txt").write_text(str(number))
        hg(folder, "commit", "-A", "-m", f"number {number}\nmore", "-d", f"{1_700_000_000 + number} 0")
    return folder


def test_changesets_are_named_listed_and_built(project: Path, tmp_path: Path) -> None:
    repository = open_repository(project)
    assert repository.kind == "hg"
    first, last = repository.commit("0"), repository.commit(repository.default_branch("default"))
    assert (first.subject, first.parents, first.time.timestamp()) == ("number 1", (), 1_700_000_001)
    assert [each.subject for each in repository.commits(first, last)] == ["number 2", "number 3"]
    assert repository.is_ancestor(first, last)
    assert not repository.is_ancestor(last, first)
    built = build(repository, first, BuildRecipe(), tmp_path / "cache")
    assert built.folder is not None
    assert (Path(built.folder) / "a.txt").read_text() == "1"
    assert (project / "a.txt").read_text() == "3"


def test_what_is_not_there_is_said_in_hg_s_own_words(project: Path, tmp_path: Path) -> None:
    repository = HgRepository.open(project)
    for text in ("nonsense", "--all", ""):
        with pytest.raises(InvalidInput, match="there is no changeset"):
            repository.commit(text)
    with pytest.raises(CannotMeasure, match="hg pull default: "):
        repository.fetch("default")
    with pytest.raises(InvalidInput, match="no repository found"):
        HgRepository.open(tmp_path)


def test_what_is_new_is_pulled(project: Path, tmp_path: Path) -> None:
    hg(tmp_path, "clone", "-q", "project", "clone")
    clone = HgRepository.open(tmp_path / "clone")
    (project / "a.txt").write_text("4")
    hg(project, "commit", "-m", "number 4")
    clone.fetch("default")
    newest = clone.commit("default")
    assert newest.subject == "number 4"
    assert clone.remotes() == ("default",)
    since = datetime.fromtimestamp(1_700_000_003, UTC)
    assert [each.subject for each in clone.commits_since(since, newest)] == ["number 3", "number 4"]


def state(root: Path, base: str | None = None) -> Repository:
    (found,) = repositories_of([str(root)], None if base is None else {str(root): base})
    return found


def test_a_mercurial_tree_is_told_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "_PATIENCE_S", 60.0)  # it starts slowly on a busy machine
    hg(tmp_path, "init")
    (tmp_path / "a.py").write_text("a")
    hg(tmp_path, "commit", "-A", "-m", "first")
    clean = state(tmp_path)
    assert (clean.system, clean.branch, clean.modified, clean.changes) == ("hg", "default", False, {})
    assert clean.head == hg(tmp_path, "log", "-r", ".", "--template", "{node}")
    (tmp_path / "a.py").write_text("changed")
    edited = state(tmp_path)
    assert edited.modified
    assert edited.changes is not None
    assert list(edited.changes) == ["a.py"]
    hg(tmp_path, "commit", "-m", "second")
    assert state(tmp_path, clean.base).changes == edited.changes
