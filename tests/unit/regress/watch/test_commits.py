from __future__ import annotations

from pathlib import Path

import pytest
from small_repository import SmallRepository

from benchwright.core.errors import InvalidInput
from benchwright.regress.repository import Commit, GitRepository
from benchwright.regress.watch.commits import NewCommits, is_hash, new_commits, recorded_commit


@pytest.fixture
def small(tmp_path: Path) -> SmallRepository:
    return SmallRepository(tmp_path / "repository")


@pytest.fixture
def repository(small: SmallRepository) -> GitRepository:
    return GitRepository(small.folder)


def hashes(found: NewCommits) -> list[str]:
    return [commit.hash for commit in found.commits]


def tip_of(repository: GitRepository) -> Commit:
    return repository.commit("main")


def test_at_first_only_the_newest_commit_is_measured(small: SmallRepository, repository: GitRepository) -> None:
    small.commit("1")
    newest = small.commit("2")
    assert hashes(new_commits(repository, None, None, tip_of(repository))) == [newest]


def test_from_a_first_commit_on_all_are_measured_it_included(small: SmallRepository, repository: GitRepository) -> None:
    made = [small.commit(str(i)) for i in range(4)]
    assert hashes(new_commits(repository, None, repository.commit(made[1]), tip_of(repository))) == made[1:]


def test_a_single_new_commit_is_measured_at_once(small: SmallRepository, repository: GitRepository) -> None:
    last, new = small.commit("1"), small.commit("2")
    assert hashes(new_commits(repository, repository.commit(last), None, tip_of(repository))) == [new]
    assert hashes(new_commits(repository, repository.commit(new), None, tip_of(repository))) == []


def test_the_last_one_finished_goes_before_the_first_to_measure(
    small: SmallRepository, repository: GitRepository
) -> None:
    made = [small.commit(str(i)) for i in range(4)]
    found = new_commits(repository, repository.commit(made[2]), repository.commit(made[0]), tip_of(repository))
    assert hashes(found) == made[3:]


def test_a_step_measures_one_commit_in_so_many(small: SmallRepository, repository: GitRepository) -> None:
    made = [small.commit(str(i)) for i in range(8)]
    tip = tip_of(repository)
    assert hashes(new_commits(repository, repository.commit(made[0]), None, tip, step=3)) == [made[3], made[6]]
    assert hashes(new_commits(repository, None, repository.commit(made[0]), tip, step=3)) == [made[0], made[3], made[6]]
    assert hashes(new_commits(repository, repository.commit(made[6]), None, tip, step=3)) == []


def test_of_a_merge_only_the_merge_itself_is_measured(small: SmallRepository, repository: GitRepository) -> None:
    last = small.commit("1")
    small.git("checkout", "-q", "-b", "topic")
    small.commit("topic 1")
    small.commit("topic 2")
    small.git("checkout", "-q", "main")
    on_main = small.commit("2")
    small.git("merge", "-q", "--no-ff", "-m", "merge", "topic")
    merge = small.git("rev-parse", "HEAD")
    assert hashes(new_commits(repository, repository.commit(last), None, tip_of(repository))) == [on_main, merge]


def test_after_a_rewrite_it_goes_on_after_the_last_commit_in_common(
    small: SmallRepository, repository: GitRepository
) -> None:
    common = small.commit("1")
    last = repository.commit(small.commit("2"))
    small.git("reset", "-q", "--hard", common)
    rewritten = [small.commit("2, amended"), small.commit("3")]
    found = new_commits(repository, last, None, tip_of(repository))
    assert hashes(found) == rewritten
    assert "no longer in the branch" in found.notes[0]
    assert common[:10] in found.notes[0]


def test_a_branch_that_was_set_back_has_nothing_new_until_it_grows(
    small: SmallRepository, repository: GitRepository
) -> None:
    common = small.commit("1")
    last = repository.commit(small.commit("2"))
    small.git("reset", "-q", "--hard", common)
    found = new_commits(repository, last, None, tip_of(repository))
    assert hashes(found) == []
    assert "ahead of the branch" in found.notes[0]
    grown = small.commit("3")
    assert hashes(new_commits(repository, last, None, tip_of(repository))) == [grown]


def test_of_a_branch_with_another_history_only_the_newest_commit_is_measured(
    small: SmallRepository, repository: GitRepository
) -> None:
    last = repository.commit(small.commit("1"))
    small.git("checkout", "-q", "--orphan", "other")
    small.commit("other 1")
    newest = small.commit("other 2")
    found = new_commits(repository, last, None, repository.commit("other"))
    assert hashes(found) == [newest]
    assert "rewritten from its first commit on" in found.notes[0]


def test_a_first_commit_that_is_not_in_the_branch_is_refused(small: SmallRepository, repository: GitRepository) -> None:
    small.commit("1")
    small.git("checkout", "-q", "-b", "topic")
    elsewhere = small.commit("2")
    with pytest.raises(InvalidInput, match="not in the branch"):
        new_commits(repository, None, repository.commit(elsewhere), tip_of(repository))


def test_a_recorded_commit_must_be_a_hash_of_this_repository(small: SmallRepository, repository: GitRepository) -> None:
    made = small.commit("1")
    for text in (made, made[:10], made.upper()):
        found = recorded_commit(repository, text)
        assert found is not None
        assert found.hash == made
    for text in (None, "main", "HEAD", "f" * 40, "", "--all", f"{made} {made}", "0"):
        assert recorded_commit(repository, text) is None


@pytest.mark.parametrize(("text", "is_one"), [("abc1234", True), ("main", False), ("abc", False), ("a" * 65, False)])
def test_what_looks_like_a_hash(text: str, is_one: bool) -> None:
    assert is_hash(text) is is_one
