"""What every system of revision control beside git must do."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from plugin_package import variants

from benchwright.core.errors import InvalidInput
from benchwright.regress.repository import REVISION_CONTROL, RevisionControl, open_repository
from benchwright.runs.provenance.provenance import repositories_of
from benchwright.runs.provenance.working_trees import nearest_tree, tree_systems


def with_hg(folder: Path) -> None:
    if shutil.which("hg") is None:
        pytest.skip("Mercurial is not installed")
    subprocess.run(["hg", "init"], cwd=folder, check=True)
    for number in (1, 2, 3):
        (folder / "a.txt").write_text(str(number))
        words = ["commit", "-A", "-m", f"number {number}", "-d", f"{1_700_000_000 + number} 0"]
        subprocess.run(["hg", "--config", "ui.username=t", *words], cwd=folder, check=True, capture_output=True)


def with_snapshots(folder: Path) -> None:
    for number in (1, 2, 3):
        place = folder / ".snapshots" / str(number)
        place.mkdir(parents=True)
        (place / "a.txt").write_text(str(number))
        os.utime(place, (1_700_000_000 + number,) * 2)


MADE = {"hg": with_hg, "snapshots": with_snapshots}  # with three commits of a.txt: 1, 2, 3


@pytest.fixture(params=variants(REVISION_CONTROL))
def name(request: pytest.FixtureRequest, plugins: None, tmp_path: Path) -> str:
    found: str = request.param
    tree_systems.cache_clear()
    (tmp_path / "project" / "sub").mkdir(parents=True)
    MADE[found](tmp_path / "project")
    return found


@pytest.fixture
def system(name: str) -> RevisionControl:
    return REVISION_CONTROL.load(name)()


def test_the_tree_is_found_from_inside_and_its_state_told(name: str, system: RevisionControl, tmp_path: Path) -> None:
    root = tmp_path / "project"
    assert nearest_tree(root / "sub") == (root, name)
    state = system.state(str(root), None, time.monotonic() + 60)
    assert state is not None
    assert (state.system, state.root, state.head) == (
        name,
        str(root),
        open_repository(root).commit("HEAD" if name != "hg" else ".").hash,
    )
    assert [each.system for each in repositories_of([str(root / "sub")])] == [name]


def test_history_is_read_in_order_and_checked_out(name: str, system: RevisionControl, tmp_path: Path) -> None:
    repository = open_repository(tmp_path / "project" / "sub")
    assert repository.kind == name
    assert repository.usual_remote
    last = repository.commit(repository.default_branch(""))
    found = repository.commits_since(repository.commit("1").time, last)
    assert found == sorted(found, key=lambda each: each.time)
    assert repository.commits(found[0], last) == found[1:]
    assert repository.is_ancestor(found[0], last)
    assert not repository.is_ancestor(last, found[0])
    assert (repository.worktree(last, tmp_path / "out") / "a.txt").read_text() == "3"
    repository.forget_worktrees()


def test_what_is_not_there_is_refused(name: str, system: RevisionControl, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        open_repository(tmp_path / "project").commit("nonsense")
    with pytest.raises(InvalidInput):
        system.open(tmp_path)


def test_git_comes_first_where_both_are(name: str, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path / "project", check=True)
    assert nearest_tree(tmp_path / "project") == (tmp_path / "project", "git")
