"""Revisions are built apart from the user's tree and environment, once, and whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from small_repository import SmallRepository

from benchwright.regress.build_inventory import RevisionInventory
from benchwright.regress.builder import build
from benchwright.regress.builds import BuildRecipe, BuiltRevision, RevisionNotBuilt
from benchwright.regress.repository import GitRepository

RECIPE = BuildRecipe(command="sh ./make.sh")


@pytest.fixture
def small(tmp_path: Path) -> SmallRepository:
    made = SmallRepository(tmp_path / "project")
    made.commit("one", {"make.sh": "cat value.txt > built.txt; echo x >> ../runs.txt; echo made\n", "value.txt": "1\n"})
    made.commit("two", {"value.txt": "2\n"})
    made.commit(
        "broken", {"make.sh": "for i in $(seq 30); do echo line $i; done; echo 'no rule to make it' >&2; exit 7\n"}
    )
    return made


def built(small: SmallRepository, text: str, cache: Path, recipe: BuildRecipe = RECIPE) -> BuiltRevision:
    repository = GitRepository.open(small.folder)
    return build(repository, repository.commit(text), recipe, cache)


def source(revision: BuiltRevision) -> Path:
    assert revision.folder is not None
    return Path(revision.folder)


def test_a_commit_is_built_once_in_a_tree_of_its_own(small: SmallRepository, tmp_path: Path) -> None:
    first = built(small, "HEAD~1", tmp_path / "cache")
    assert (source(first) / "built.txt").read_text() == "2\n"
    assert not (small.folder / "built.txt").exists()
    assert first.log is not None
    assert "made" in Path(first.log).read_text()
    again = built(small, "HEAD~1", tmp_path / "cache")
    assert (first.reused, again.reused) == (False, True)
    assert again.folder == first.folder
    assert (source(first).parent / "runs.txt").read_text() == "x\n"
    older = built(small, "HEAD~2", tmp_path / "cache")
    assert (source(older) / "built.txt").read_text() == "1\n"


def test_another_command_or_another_compiler_is_another_build(
    small: SmallRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = built(small, "HEAD~1", tmp_path / "cache")
    other = built(small, "HEAD~1", tmp_path / "cache", BuildRecipe(command="sh ./make.sh; true"))
    monkeypatch.setenv("CFLAGS", "-O0")
    slow = built(small, "HEAD~1", tmp_path / "cache")
    assert len({first.folder, other.folder, slow.folder}) == 3
    assert not slow.reused


def test_a_failed_build_says_how_it_ended_and_keeps_its_log_alone(small: SmallRepository, tmp_path: Path) -> None:
    with pytest.raises(RevisionNotBuilt, match=r"could not be built \(exit code 7\)") as caught:
        built(small, "HEAD", tmp_path / "cache")
    assert caught.value.last_lines[-2:] == ("line 30", "no rule to make it")
    assert len(caught.value.last_lines) == 12
    assert caught.value.log is not None
    assert "line 1\n" in caught.value.log.read_text()
    assert [entry.name for entry in caught.value.log.parent.iterdir()] == ["build.log"]
    assert str(tmp_path / "cache") not in small.git("worktree", "list")


def test_without_a_command_the_commit_is_only_checked_out(small: SmallRepository, tmp_path: Path) -> None:
    found = built(small, "HEAD~1", tmp_path / "cache", BuildRecipe())
    assert found.python is None
    assert (source(found) / "value.txt").read_text() == "2\n"


def test_python_path_into_the_user_s_tree_leads_to_the_worktree(
    small: SmallRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{small.folder}/src:/elsewhere")
    found = built(small, "HEAD~1", tmp_path / "cache", BuildRecipe())
    assert found.env["PYTHONPATH"] == f"{found.folder}/src:/elsewhere"


CHILD = """
import sys
from pathlib import Path
import msgspec
from benchwright.regress.builder import build
from benchwright.regress.builds import BuildRecipe
from benchwright.regress.build_inventory import RevisionInventory
from benchwright.regress.repository import GitRepository
folder, text, cache, recipe = sys.argv[1:]
repository = GitRepository.open(folder)
built = build(repository, repository.commit(text), msgspec.json.decode(recipe, type=BuildRecipe), Path(cache))
print(built.reused)
"""


def in_child(
    small: SmallRepository, text: str, cache: Path, recipe: BuildRecipe = RECIPE, nap: str = "0"
) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", CHILD, str(small.folder), text, str(cache), msgspec.json.encode(recipe).decode()]
    return subprocess.Popen(argv, env={**os.environ, "NAP": nap}, stdout=subprocess.PIPE, text=True)


def test_a_build_that_was_killed_is_none(small: SmallRepository, tmp_path: Path) -> None:
    make = "echo half > half.txt; touch ../started; sleep ${NAP:-0}; echo whole > built.txt\n"
    small.commit("slow", {"make.sh": make})
    with in_child(small, "HEAD", tmp_path / "cache", nap="5") as killed:
        deadline = time.monotonic() + 60
        while not list((tmp_path / "cache").glob("*/*/started")):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        killed.kill()
    found = built(small, "HEAD", tmp_path / "cache")
    assert not found.reused
    assert (source(found) / "built.txt").read_text() == "whole\n"


def test_two_processes_build_a_commit_once(small: SmallRepository, tmp_path: Path) -> None:
    children = [in_child(small, "HEAD~1", tmp_path / "cache") for _ in range(2)]
    assert sorted(child.communicate()[0] for child in children) == ["False\n", "True\n"]
    [runs] = (tmp_path / "cache").glob("*/*/runs.txt")
    assert runs.read_text() == "x\n"


def test_a_daemon_that_a_build_leaves_behind_blocks_nobody(small: SmallRepository, tmp_path: Path) -> None:
    recipe = BuildRecipe(command="sleep 2000 >/dev/null 2>&1 & echo $! > ../daemon")
    first = built(small, "HEAD", tmp_path / "cache", recipe)
    assert built(small, "HEAD", tmp_path / "cache", recipe).reused
    os.kill(int((source(first).parent / "daemon").read_text()), signal.SIGKILL)


BUILD_SH = """\
test -d "$1/.git" -o -f "$1/.git" || exit 3
cat "$1/value.txt" > "$2"
echo helper > "$(dirname "$2")/helper"
echo x >> "$(dirname "$0")/runs.txt"
"""


def by_script(tmp_path: Path, platform: str = "host") -> BuildRecipe:
    return BuildRecipe(
        frameworks_dir=str(tmp_path / "frameworks"),
        framework="generic",
        platform=platform,
        exec_dir=str(tmp_path / "exec"),
    )


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    folder = tmp_path / "frameworks" / "generic"
    (folder / "host").mkdir(parents=True)
    (folder / "host" / "build.sh").write_text(BUILD_SH)
    return folder


def test_a_framework_s_script_builds_to_the_place_of_the_commit_s_day(
    small: SmallRepository, scripts: Path, tmp_path: Path
) -> None:
    found = built(small, "HEAD~1", tmp_path / "cache", by_script(tmp_path))
    head = small.git("rev-parse", "HEAD~1")
    folder = tmp_path / "exec" / "generic" / "host" / "2023" / "11" / "15" / head
    assert found.programs == {"program": f"{folder}/generic_benchmark", "helper": f"{folder}/helper"}
    assert Path(found.programs["program"]).read_text() == "2\n"
    again = built(small, "HEAD~1", tmp_path / "cache", by_script(tmp_path))
    assert again.reused
    assert again.programs == found.programs
    assert (scripts / "host" / "runs.txt").read_text() == "x\n"


def test_a_platform_without_a_script_uses_the_framework_s(
    small: SmallRepository, scripts: Path, tmp_path: Path
) -> None:
    (scripts / "build.sh").write_text(BUILD_SH)
    found = built(small, "HEAD~1", tmp_path / "cache", by_script(tmp_path, "android/clang"))
    assert "/generic/android/clang/2023/" in found.programs["program"]


def test_half_a_program_is_not_reused(small: SmallRepository, scripts: Path, tmp_path: Path) -> None:
    (scripts / "host" / "build.sh").write_text('echo half > "$2"; kill -9 $PPID; sleep 0.3\n')
    with in_child(small, "HEAD~1", tmp_path / "cache", by_script(tmp_path)) as killed:
        killed.wait()
    assert killed.returncode == -signal.SIGKILL
    (scripts / "host" / "build.sh").write_text(BUILD_SH)
    found = built(small, "HEAD~1", tmp_path / "cache", by_script(tmp_path))
    assert not found.reused
    assert Path(found.programs["program"]).read_text() == "2\n"


def test_a_script_that_makes_nothing_failed(small: SmallRepository, scripts: Path, tmp_path: Path) -> None:
    (scripts / "host" / "build.sh").write_text("echo nothing to do\n")
    with pytest.raises(RevisionNotBuilt, match="made no"):
        built(small, "HEAD~1", tmp_path / "cache", by_script(tmp_path))


def test_the_cache_lists_builds_and_removes_those_that_nobody_uses(small: SmallRepository, tmp_path: Path) -> None:
    with in_child(small, "HEAD~1", tmp_path / "cache") as child:
        child.wait()
    with pytest.raises(RevisionNotBuilt):
        built(small, "HEAD", tmp_path / "cache")
    inventory = RevisionInventory(tmp_path / "cache")
    entries = {entry.kind: entry for entry in inventory.entries()}
    assert entries["revision"].name == f"project {small.git('rev-parse', 'HEAD~1')[:10]}"
    assert entries["leftover"].size_bytes > 0
    assert inventory.verify(entries["revision"], lambda done: None) is None
    used = built(small, "HEAD~1", tmp_path / "cache", RECIPE)
    assert used.reused
    assert not inventory.remove(entries["revision"])
    assert inventory.remove(entries["leftover"])
    with in_child(small, "HEAD~2", tmp_path / "other") as child:
        child.wait()
    other = RevisionInventory(tmp_path / "other")
    [unused] = other.entries()
    assert str(tmp_path / "other") in small.git("worktree", "list")
    assert other.remove(unused)
    assert other.entries() == []
    assert str(tmp_path / "other") not in small.git("worktree", "list")
