"""How a git working tree differs from a commit, by real git."""

from __future__ import annotations

import os
import subprocess
import time
from datetime import datetime
from pathlib import Path

import pytest
from builders import git
from hostile_checkout import FILTERS, HostileCheckout

from benchwright.core.provenance import ABSENT, Provenance, Repository, differences
from benchwright.runs.provenance import provenance
from benchwright.runs.provenance.provenance import repositories_of


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "sub").mkdir(parents=True)
    git(tmp_path, "init", "-q", "tree")
    (root / "a.py").write_text("a")
    (root / "sub" / "b.py").write_text("b")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    return root


def state(folder: Path, base: str | None = None) -> Repository:
    [found] = repositories_of([str(folder)], {str(folder): base} if base else None)
    return found


def test_a_clean_tree_has_no_changes_and_is_found_from_below(tree: Path) -> None:
    head = git(tree, "rev-parse", "HEAD")
    [found] = repositories_of([str(tree / "sub"), str(tree)])
    assert (found.root, found.base, found.head, found.changes) == (str(tree), head, head, {})


def test_edited_new_and_deleted_files_are_told_and_untracked_ones_are_not(tree: Path) -> None:
    (tree / "a.py").write_text("changed")
    (tree / "sub" / "b.py").unlink()
    (tree / "c.py").write_text("c")
    (tree / "d.py").write_text("d")
    git(tree, "add", "c.py")
    changes = state(tree).changes
    assert changes is not None
    assert set(changes) == {"a.py", "sub/b.py", "c.py"}
    assert changes["sub/b.py"] == ABSENT


def test_committing_the_changes_makes_no_difference_and_another_commit_does(tree: Path) -> None:
    (tree / "a.py").write_text("changed")
    before = state(tree)
    git(tree, "commit", "-qam", "second")
    after = state(tree, before.base)
    assert before.changes == after.changes
    assert differences(Provenance(repositories=(before,)), Provenance(repositories=(after,))) == []
    (tree / "sub" / "b.py").write_text("other")
    git(tree, "commit", "-qam", "third")
    later = state(tree, before.base)
    [said] = differences(Provenance(repositories=(before,)), Provenance(repositories=(later,)))
    assert said.startswith(f"git {tree}: sub/b.py was changed (HEAD was")


def test_a_commit_that_is_gone_is_told(tree: Path) -> None:
    before = state(tree)
    gone = Repository(root=str(tree), base="0" * 40, head="0" * 40)
    after = state(tree, gone.base)
    assert after.base == before.base
    [said] = differences(Provenance(repositories=(gone,)), Provenance(repositories=(after,)))
    assert "no longer exists" in said


def test_where_there_is_no_tree_no_commit_or_no_git_nothing_is_said(
    tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "-q", "empty")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / ".git").write_text("nonsense")
    places = [str(tmp_path / name) for name in ("empty", "odd", "absent")]
    assert repositories_of(places) == ()
    monkeypatch.setenv("PATH", "/nowhere")
    assert repositories_of([str(tree)]) == ()


def test_a_git_that_takes_long_is_not_waited_for(tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip()
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text(f'#!/bin/sh\ncase "$*" in *name-only*) exec sleep 300;; esac\nexec {real} "$@"\n')
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(provenance, "_PATIENCE_S", 1.0)
    began = time.monotonic()
    assert state(tree).changes is None
    assert time.monotonic() - began < 200  # and not the 300 s that it sleeps


def test_names_that_are_no_text_do_no_harm(tree: Path) -> None:
    name = os.fsencode(str(tree)) + b"/\xff.py"
    Path(os.fsdecode(name)).write_text("x")
    git(tree, "add", "-A")
    changes = state(tree).changes
    assert changes is not None
    assert list(changes) == ["?.py"]


def test_branch_time_and_whether_files_are_modified_are_told(tree: Path) -> None:
    git(tree, "checkout", "-q", "-b", "topic/x")
    clean = state(tree)
    assert (clean.branch, clean.modified) == ("topic/x", False)
    assert clean.time is not None
    assert abs(datetime.fromisoformat(clean.time).timestamp() - time.time()) < 600
    (tree / "a.py").write_text("changed")
    assert state(tree).modified
    git(tree, "commit", "-qam", "second")
    resumed = state(tree, clean.base)  # compared with the commit of then, yet as committed
    assert resumed.changes
    assert resumed.modified is False
    git(tree, "checkout", "-q", "--detach")
    assert state(tree).branch is None


def test_the_branch_of_a_worktree_is_its_own(tree: Path, tmp_path: Path) -> None:
    git(tree, "worktree", "add", "-q", "-b", "beside", str(tmp_path / "beside"))
    assert state(tmp_path / "beside").branch == "beside"


def test_editable_packages_of_other_repositories_come_last_and_of_the_same_one_count_as_it(
    tree: Path, tmp_path: Path
) -> None:
    other = tmp_path / "library"
    other.mkdir()
    git(other, "init", "-q")
    git(other, "commit", "-q", "--allow-empty", "-m", "one")
    editable = {str(other / "python"): ["library"], str(tree): ["mine"], str(tmp_path / "no_repository"): ["loose"]}
    found = repositories_of([str(tree)], None, editable)
    assert [(each.root, each.packages) for each in found] == [(str(tree), ()), (str(other), ("library",))]


def test_variables_of_a_hook_do_not_lead_elsewhere(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert repositories_of([str(tree)]) != ()


def test_nothing_that_a_checkout_names_is_run(tmp_path: Path) -> None:
    hostile = HostileCheckout(tmp_path)
    [found] = repositories_of([str(hostile.root)])
    [again] = repositories_of([str(hostile.root)], {str(hostile.root): git(hostile.root, "rev-parse", "HEAD~1")})
    assert hostile.ran == set()
    assert found.head == again.head == hostile.commit
    assert set(found.changes or ()) == {f"{number}.txt" for number in range(len(FILTERS))}
    assert {"filter-0-clean", "core.fsmonitor"} <= hostile.by_plain_git()


def test_the_filters_of_the_user_s_own_configuration_still_hold(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / ".gitattributes").write_text("*.py filter=upper\n")
    (tree / "upper.gitconfig").write_text('[filter "upper"]\n\tclean = tr a-z A-Z\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tree / "upper.gitconfig"))
    (tree / "a.py").write_text("x")
    for words in (["add", "-A"], ["-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "filtered"]):
        subprocess.run(["git", *words], cwd=tree, check=True)
    os.utime(tree / "a.py", (time.time() - 100, time.time() - 100))
    git(tree, "config", "filter.upper.clean", "sed s/^/evil/")
    assert state(tree).changes == {}
