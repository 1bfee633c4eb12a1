from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from small_repository import SmallRepository

from benchwright.core.decision import Decision
from benchwright.executors.observer import Observer
from benchwright.kinds.spec.options import spec_options_of
from benchwright.regress.builds import BuiltRevision
from benchwright.regress.repository import Commit, GitRepository
from benchwright.regress.revision_paths import in_worktree
from benchwright.regress.watch.records import RunType
from benchwright.regress.watch.watch import WatchedRuns
from benchwright.regress.watch.work import BuiltCommit, WatchPlace, WatchTrial
from benchwright.runner.requests import order_of
from benchwright.runner.run import RunOrder


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    small = SmallRepository(tmp_path / "repository")
    small.commit("1", {"bench.py": "", "folder/other.py": ""})
    return GitRepository(small.folder)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def ordered(base: Path, *targets: str, command: tuple[str, ...] = (), **values: object) -> RunOrder:
    return order_of({"base": str(base), **values}, values, targets=targets, command=command)


def test_commands_run_in_the_repository(repository: GitRepository, elsewhere: Path, tmp_path: Path) -> None:
    order = in_worktree(repository.root, ordered(tmp_path, command=("python", "bench.py")))
    assert order.options.cwd == str(repository.root)
    own = in_worktree(repository.root, ordered(tmp_path, command=("python", "bench.py"), cwd="here"))
    assert own.options.cwd == "here"


def test_within_the_repository_the_user_stands_where_he_stands(
    repository: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository.root / "folder")
    order = ordered(tmp_path, command=("python", "other.py"))
    assert in_worktree(repository.root, order) == order


def test_files_are_looked_up_here_then_in_the_repository(
    repository: GitRepository, elsewhere: Path, tmp_path: Path
) -> None:
    (elsewhere / "mine.py").write_text("")
    order = in_worktree(repository.root, ordered(tmp_path, "mine.py", "bench.py", "in_a_later_commit.py::Net"))
    assert order.options.targets == (
        "mine.py",
        str(repository.root / "bench.py"),
        str(repository.root / "in_a_later_commit.py::Net"),
    )
    assert order.options.cwd is None


def test_what_comes_with_benchwright_is_no_file_of_the_repository(
    repository: GitRepository, elsewhere: Path, tmp_path: Path
) -> None:
    assert in_worktree(repository.root, ordered(tmp_path, "matrix")).options.targets == ("matrix",)


@pytest.mark.parametrize(
    ("on", "platforms", "is_elsewhere"),
    [
        (None, (), False),
        ("local", (), False),
        ("ssh:board", (), True),
        ("adb:SERIAL", (), True),
        (None, ("host",), False),
        (None, ("android/clang",), True),
        (None, ("android", "host"), False),
    ],
)
def test_builds_may_overlap_only_with_measurements_elsewhere(
    repository: GitRepository, tmp_path: Path, on: str | None, platforms: tuple[str, ...], is_elsewhere: bool
) -> None:
    order = ordered(tmp_path, command=("true",), on=on)
    assert WatchedRuns(order, platforms, Decision(), repository, Observer()).is_elsewhere is is_elsewhere


def built(hash: str, day: int, **programs: str) -> BuiltCommit:
    commit = Commit(hash=hash, time=datetime(2026, 11, day, tzinfo=UTC), subject="s")
    return BuiltCommit(commit, BuiltRevision(commit=commit, programs=programs))


def trial(purpose: RunType = RunType.BENCHMARK, *parts: str) -> WatchTrial:
    return WatchTrial(
        treatment=built("b" * 40, 17, program="/new"),
        control=built("a" * 40, 16, program="/old"),
        place=WatchPlace(),
        purpose=purpose,
        regressed=tuple(("net", "latency", (("op", part),) if part else ()) for part in parts),
    )


def test_the_info_of_a_user_is_merged_with_what_the_watch_knows(repository: GitRepository, tmp_path: Path) -> None:
    helper = tmp_path / "helper"
    helper.write_text("")
    told = {
        "treatment": {"version": "v7", "commit": "mine", "programs": {"helper": {"location": str(helper)}}},
        "control": {"version": "v6"},
        "meta": {"team": "blue"},
    }
    runs = WatchedRuns(ordered(tmp_path, info=json.dumps(told)), (), Decision(), repository, Observer())
    runs.places()
    order = runs._ordered(trial())
    control, treatment = (variation.info for variation in order.variations)
    assert control is not None
    assert treatment is not None
    assert (treatment.version, treatment.commit, treatment.commit_time) == ("v7", "b" * 40, 1794873600.0)
    assert treatment.programs == {"helper": str(helper), "program": "/new"}
    assert (control.version, control.commit, control.programs) == ("v6", "a" * 40, {"program": "/old"})
    assert spec_options_of(order.options).labels == {"team": "blue"}


def test_runs_are_labelled_with_their_type_and_commits(repository: GitRepository, tmp_path: Path) -> None:
    runs = WatchedRuns(ordered(tmp_path, command=("true",)), (), Decision(), repository, Observer())
    runs.places()
    order = runs._ordered(trial(RunType.REGRESS, "", "conv"))
    assert order.labels == {"run_type": "regress", "commit": "b" * 40, "control_commit": "a" * 40}
    assert (order.options.run_type, order.options.regressed_types) == ("regress", ("NET", "conv"))
