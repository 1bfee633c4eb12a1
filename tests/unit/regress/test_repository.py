"""Repositories are read by real git, and the user's working tree stays as it is."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hostile_checkout import HostileCheckout
from small_repository import SmallRepository

from benchwright.core.errors import CannotMeasure, InvalidInput
from benchwright.regress.repository import CommandFailed, GitRepository, call_git
from benchwright.regress.sides import working_tree_commit


@pytest.fixture
def small(tmp_path: Path) -> SmallRepository:
    made = SmallRepository(tmp_path / "project")
    made.commit("first", {"a.txt": "1"})
    made.commit("second: with | and \ttab", {"a.txt": "2"})
    return made


@pytest.fixture
def repository(small: SmallRepository) -> GitRepository:
    return GitRepository.open(small.folder)


def test_a_commit_has_its_hash_time_parents_and_subject(small: SmallRepository, repository: GitRepository) -> None:
    first, second = repository.commit("HEAD~1"), repository.commit("main")
    assert second.hash == small.git("rev-parse", "HEAD")
    assert second.parents == (first.hash,)
    assert second.subject == "second: with | and \ttab"
    assert second.time == datetime(2023, 11, 15, 0, 13, 20, tzinfo=UTC)
    assert repository.commit(second.hash[:8]) == second


@pytest.mark.parametrize("text", ["nonsense", "--all", "HEAD:a.txt", "main..HEAD", ""])
def test_what_names_no_commit_is_refused(repository: GitRepository, text: str) -> None:
    with pytest.raises(InvalidInput, match="there is no commit"):
        repository.commit(text, where="--control")


def test_a_mistyped_branch_is_offered(repository: GitRepository, small: SmallRepository) -> None:
    small.git("branch", "treatment")
    with pytest.raises(InvalidInput, match="did you mean 'treatment'"):
        repository.commit("treatmnt", where="--control")


def test_a_folder_that_is_no_repository_is_refused_in_git_s_own_words(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInput, match=r"not a git repository.*change into a git repository, or name its folder with --repo-dir"
    ):
        GitRepository.open(tmp_path)


def test_commits_follow_first_parents_and_leave_out_what_was_merged(
    small: SmallRepository, repository: GitRepository
) -> None:
    begin = repository.commit("HEAD")
    small.git("checkout", "-q", "-b", "side")
    small.commit("on the side", {"b.txt": "1"})
    small.git("checkout", "-q", "main")
    small.commit("third", {"a.txt": "3"})
    small.time_s += 1
    small.git("merge", "-q", "--no-ff", "-m", "merge side", "side")
    small.commit("fourth", {"a.txt": "4"})
    listed = repository.commits(begin, repository.commit("main"))
    assert [commit.subject for commit in listed] == ["third", "merge side", "fourth"]
    assert repository.commits(begin, begin) == []
    assert repository.is_ancestor(begin, listed[-1])
    assert not repository.is_ancestor(listed[-1], begin)


def test_a_worktree_holds_the_commit_and_leaves_the_user_s_tree_alone(
    small: SmallRepository, repository: GitRepository, tmp_path: Path
) -> None:
    (small.folder / "a.txt").write_text("not committed")
    hook = small.folder / ".git" / "hooks" / "post-checkout"
    hook.write_text("#!/bin/sh\ntouch hooked\n")
    hook.chmod(0o755)
    place = repository.worktree(repository.commit("HEAD~1"), tmp_path / "there")
    assert (place / "a.txt").read_text() == "1"
    assert (small.folder / "a.txt").read_text() == "not committed"
    assert small.git("branch", "--show-current") == "main"
    assert not (place / "hooked").exists()


def test_a_worktree_has_its_submodules_without_asking_their_remote(
    small: SmallRepository, repository: GitRepository, tmp_path: Path
) -> None:
    library = SmallRepository(tmp_path / "library")
    library.commit("one", {"lib.txt": "one"})
    small.git("submodule", "--quiet", "add", str(library.folder), "deps/library")
    small.commit("with a library")
    library.commit("two", {"lib.txt": "two"})
    small.git("-C", "deps/library", "pull", "-q")
    small.commit("with a newer library")
    library.folder.rename(tmp_path / "gone")
    old = repository.worktree(repository.commit("HEAD~1"), tmp_path / "old")
    new = repository.worktree(repository.commit("HEAD"), tmp_path / "new")
    assert (old / "deps/library/lib.txt").read_text() == "one"
    assert (new / "deps/library/lib.txt").read_text() == "two"
    assert str(library.folder) in small.git("config", "submodule.deps/library.url")


def test_what_is_new_at_the_remote_is_fetched_and_its_default_branch_known(
    small: SmallRepository, tmp_path: Path
) -> None:
    small.git("clone", "-q", str(small.folder), str(tmp_path / "clone"))
    clone = GitRepository.open(tmp_path / "clone")
    newest = small.commit("third", {"a.txt": "3"})
    assert clone.commit("origin/main").hash != newest
    clone.fetch("origin")
    assert clone.default_branch("origin") == "origin/main"
    assert clone.commit("origin/main").hash == newest
    small.git("remote", "remove", "origin", folder=clone.root)
    with pytest.raises(CannotMeasure, match="git fetch origin: "):
        clone.fetch("origin")


def test_variables_of_a_hook_do_not_lead_to_another_repository(
    small: SmallRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = SmallRepository(tmp_path / "other")
    other.commit("elsewhere")
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    assert GitRepository.open(small.folder).commit("HEAD").subject.startswith("second")


def test_fetching_leaves_tags_of_the_user_alone(small: SmallRepository, tmp_path: Path) -> None:
    small.git("clone", "-q", str(small.folder), str(tmp_path / "clone"))
    clone = GitRepository.open(tmp_path / "clone")
    small.git("tag", "v1", "HEAD", folder=clone.root)
    mine = clone.commit("v1")
    small.commit("third", {"a.txt": "3"})
    small.git("tag", "v1")
    clone.fetch("origin")
    assert clone.commit("v1") == mine
    assert clone.commit("origin/main").subject == "third"


def test_nothing_that_a_checkout_names_is_run(tmp_path: Path) -> None:
    hostile = HostileCheckout(tmp_path)
    repository = GitRepository.open(hostile.root)
    head = repository.commit("HEAD")
    assert repository.commits(repository.commit("HEAD~1"), head) == [head]
    assert set(repository.remotes()) == {"origin", "other"}
    for remote in ("origin", "other"):
        with pytest.raises(CannotMeasure):
            repository.fetch(remote)
        with pytest.raises(CannotMeasure):
            repository.default_branch(remote)
    place = repository.worktree(head, tmp_path / "there")
    assert (place / "0.txt").read_text() == "one\n"
    assert working_tree_commit(repository).parents == (head.hash,)
    with pytest.raises(CommandFailed, match="exit code 1"):
        call_git("check-ignore", "--quiet", "--", "0.txt", folder=hostile.root)
    repository.forget_worktrees()
    assert hostile.ran == set()
    assert {"remote.origin.uploadpack", "filter-0-clean"} <= hostile.by_plain_git()
    subprocess.run(["git", "config", "--unset", "remote.origin.uploadpack"], cwd=hostile.root, check=True)
    repository.fetch("origin")
    assert repository.default_branch("origin") == "origin/main"
    assert hostile.ran == set()
