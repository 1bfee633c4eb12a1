"""The working tree as a revision, and what belongs to no revision."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_repository import SmallRepository

from benchwright.core.errors import InvalidInput
from benchwright.options.table import Options
from benchwright.regress import sides
from benchwright.regress.build_environment import InheritedPython, has_editable_install
from benchwright.regress.repository import GitRepository
from benchwright.regress.revision_paths import kept_words
from benchwright.regress.sides import working_tree_commit
from benchwright.runner.variation import Variation


@pytest.fixture
def made(tmp_path: Path) -> SmallRepository:
    repository = SmallRepository(tmp_path / "repository")
    repository.commit("First", {"a.py": "1\n", "b.py": "1\n", ".gitignore": "data/\nvenv/\n"})
    return repository


def test_a_clean_tree_is_head(made: SmallRepository) -> None:
    repository = GitRepository.open(made.folder)
    assert working_tree_commit(repository) == repository.commit("HEAD")


def test_changes_new_files_and_removals_are_in_it_and_ignored_files_are_not(made: SmallRepository) -> None:
    (made.folder / "a.py").write_text("2\n")
    (made.folder / "b.py").unlink()
    (made.folder / "new.py").write_text("3\n")
    (made.folder / "data").mkdir()
    (made.folder / "data/large").write_text("4\n")
    made.git("add", "a.py")  # half of it is staged
    before = made.git("status", "--porcelain")
    repository = GitRepository.open(made.folder)
    commit = working_tree_commit(repository)
    assert made.git("ls-tree", "-r", "--name-only", commit.hash).split() == [".gitignore", "a.py", "new.py"]
    assert made.git("show", f"{commit.hash}:a.py") == "2"
    assert commit.subject == "First, with uncommitted changes"
    assert working_tree_commit(repository) == commit  # the same tree is the same commit
    assert made.git("status", "--porcelain") == before
    assert made.git("branch", "--all", "--contains", commit.hash) == ""
    (made.folder / "a.py").write_text("5\n")
    assert working_tree_commit(repository).hash != commit.hash


def test_much_that_git_does_not_know_is_not_copied(made: SmallRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sides, "_MOST_NEW_BYTES", 10)
    (made.folder / "weights.bin").write_bytes(bytes(11))
    with pytest.raises(InvalidInput, match=r"11 B of files that git does not know; ignore them \(.gitignore\)"):
        working_tree_commit(GitRepository.open(made.folder))


def test_what_a_revision_lacks_is_refused_unless_it_is_data(
    made: SmallRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("data/x.txt", "data/tool.py", "data/app", "venv/bin/python", "venv/pyvenv.cfg", "later.py"):
        path = made.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    stands_in = made.folder.parent / "control"
    stands_in.mkdir()
    (stands_in / "a.py").write_text("")
    side = Variation(side="control", revision="v1", folder=(str(made.folder), str(stands_in)))
    repository = GitRepository.open(made.folder)
    monkeypatch.chdir(made.folder / "data")

    def kept(*command: str, targets: tuple[str, ...] = ()) -> dict[str, str]:
        return kept_words(Options(targets=targets, command=command), side, repository)

    data = str(made.folder / "data/x.txt")
    python = "../venv/bin/python"
    assert kept(python, "../a.py", "x.txt", "--quiet") == {python: str(made.folder / "venv/bin/python"), "x.txt": data}
    assert kept("cat", data, "/etc/hostname") == {data: data}
    with pytest.raises(InvalidInput, match=r"git ignores ./app: both sides would run the same program"):
        kept("./app")
    for words, targets in ((("python", "../later.py"), ()), (("python", "tool.py"), ()), ((), ("../later.py::Net",))):
        with pytest.raises(InvalidInput, match=r"v1 has no .*; keep it outside of the repository"):
            kept(*words, targets=targets)


def test_a_package_that_is_imported_from_the_working_tree_is_noticed(made: SmallRepository, tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    python = InheritedPython(executable="python", prefix="/", base="python", version=(3, 11), sites=(str(site),))
    (site / "other.pth").write_text("/somewhere/else\n")
    assert not has_editable_install(python, made.folder)
    (site / "ours.pth").write_text(f"{made.folder}/src\n")
    assert has_editable_install(python, made.folder)
    (site / "ours.pth").write_text("import __editable___ours_finder; __editable___ours_finder.install()\n")
    (site / "__editable___ours_finder.py").write_text(f"MAPPING = {{'ours': '{made.folder}/src/ours'}}\n")
    assert has_editable_install(python, made.folder)
