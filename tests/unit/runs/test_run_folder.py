"""The run folder: created once, locked, written whole or not at all."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.errors import InvalidInput, RunFolderBusy
from benchwright.options.table import Options
from benchwright.runs.known_runs import all_runs, find_run, named_so
from benchwright.runs.run_folder import DiskTrouble, RunFolder
from benchwright.runs.stored_plan import StoredPlan

IDS = [
    "train.v2.2026-11-15_10:00:04",
    "train2.2026-11-15_10:00:03",
    "train.2026-11-15_10:00:02",
    "train.2026-11-15_10:00:00_2",
]


def stored(*names: str, argv: tuple[str, ...] = ("true",)) -> StoredPlan:
    benchmarks = tuple(Benchmark(name=n, workload=Command(argv=argv, cwd="/"), source="t") for n in names)
    return StoredPlan(
        name="x",
        started="2026-11-15T10:00:00+00:00",
        benchmarks=benchmarks,
        options=Options(),
    )


def test_two_runs_of_the_same_second_get_two_folders(tmp_path: Path) -> None:
    first, second = (RunFolder.create(tmp_path, "train", now=1_000_000_000) for _ in range(2))
    assert first.path != second.path
    assert second.id == first.id + "_2"


def test_a_run_name_may_say_where_the_time_goes(tmp_path: Path) -> None:
    assert RunFolder.create(tmp_path, "a.{time}.b", now=1_000_000_000).id.endswith(".b")


def test_a_locked_folder_is_refused_to_another_process(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "x")
    code = (
        "import sys; from pathlib import Path; from benchwright.runs.run_folder import RunFolder\n"
        "print(RunFolder(Path(sys.argv[1])).is_busy())"
    )
    with folder.locked():
        seen = subprocess.run(
            [sys.executable, "-c", code, str(folder.path)], capture_output=True, text=True, check=True
        )
    after = subprocess.run([sys.executable, "-c", code, str(folder.path)], capture_output=True, text=True, check=True)
    assert (seen.stdout.strip(), after.stdout.strip()) == ("True", "False")


def test_the_same_process_cannot_take_it_twice_either(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "x")
    with folder.locked(), pytest.raises(RunFolderBusy, match="another benchwright"), folder.locked():
        pass


def test_a_plan_comes_back_as_it_was_written(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "x")
    folder.write_plan(stored("a", "b"))
    assert folder.read_plan() == stored("a", "b")


def test_a_plan_of_a_later_version_is_refused_not_misread(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "x")
    folder.write("plan.json", {"format": "benchwright-plan", "version": 99})
    with pytest.raises(InvalidInput, match="format version 99"):
        folder.read_plan()


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "x")
    folder.write_run({"status": "ok"})
    # A file that may not grow stands for any disk trouble, whoever runs the tests. Python ignores SIGXFSZ.
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(DiskTrouble, match=r"run\.json"):
            folder.write_run({"status": "failed"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [p.name for p in folder.path.iterdir()] == ["run.json"]
    body = folder.read_run()
    assert body is not None
    assert body["status"] == "ok"


def test_what_an_unfinished_job_left_is_set_aside_not_overwritten(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "x")
    for content in ("first", "second"):
        (folder.path / "b.D0.data").write_text(content)
        folder.set_aside("b.D0")
    kept = sorted(p.read_text() for p in folder.path.glob("b.D0.interrupted-*.data"))
    assert kept == ["first", "second"]
    assert not (folder.path / "b.D0.data").exists()


def test_everything_an_unfinished_job_left_is_set_aside_and_nothing_of_other_jobs(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "x")
    for name in ("b.D0.data", "b.D0.log", "b.D0.log.gz", "b.D01.data"):
        (folder.path / name).write_text(name)
    folder.set_aside("b.D0")
    assert sorted(p.name for p in folder.path.iterdir()) == [
        "b.D0.interrupted-1.data",
        "b.D0.interrupted-1.log",
        "b.D0.interrupted-1.log.gz",
        "b.D01.data",
    ]


def test_a_write_that_fails_leaves_nothing_beside_the_file(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "x")
    (folder.path / "run.json").mkdir()  # cannot be replaced by a file
    with pytest.raises(DiskTrouble, match=r"run\.json"):
        folder.write_run({"status": "ok"})
    assert [p.name for p in folder.path.iterdir()] == ["run.json"]


def test_differences_between_plans_are_said_in_words() -> None:
    other = stored("a", argv=("false",))
    assert stored("a").same_target(stored("a").benchmarks, Options(show_output=True))
    (line,) = stored("a").differences(other.benchmarks, Options())
    assert line == "a: workload: argv was 'true', is 'false'"
    assert "repeat was 1, is 3" in stored("a").differences(stored("a").benchmarks, Options(repeat=3))
    assert "b was not part of the run" in stored("a").differences(stored("a", "b").benchmarks, Options())


def test_runs_are_found_by_last_name_beginning_or_path(tmp_path: Path) -> None:
    folders = []
    for name in ("one", "two"):
        folder = RunFolder.create(tmp_path, name)
        folder.write_plan(stored("a"))
        folders.append(folder)
    assert {f.id for f in all_runs(tmp_path)} == {f.id for f in folders}
    assert find_run(tmp_path, "last").id == folders[1].id
    assert find_run(tmp_path, "one").id == folders[0].id
    assert find_run(tmp_path, str(folders[0].path)).id == folders[0].id
    with pytest.raises(InvalidInput, match="no run called 'three'"):
        find_run(tmp_path, "three")


def test_a_whole_name_goes_before_the_beginning_of_a_newer_one(tmp_path: Path) -> None:
    for _ in range(2):  # the second is called as the first, and _2
        RunFolder.create(tmp_path, "x", now=1_000_000_000).write_plan(stored("a"))
    newer, older = all_runs(tmp_path)
    assert newer.id == older.id + "_2"
    assert find_run(tmp_path, older.id).id == older.id
    assert find_run(tmp_path, "x.").id == newer.id


def test_no_runs_at_all_is_said_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="benchwright run"):
        find_run(tmp_path / "absent", "last")


@pytest.mark.parametrize("name", ["../evil", "a/b{time}", "/abs", "..", "", " ", "-x", "a\nb", "x" * 250, "\udcff"])
def test_a_run_name_cannot_leave_the_folder_of_runs(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="--run-name"):
        RunFolder.create(tmp_path / "runs", name)
    assert list(tmp_path.rglob("*evil*")) == []


def with_environment(plan: StoredPlan, **env: str | None) -> StoredPlan:
    return msgspec.structs.replace(plan, benchmarks=tuple(msgspec.structs.replace(b, env=env) for b in plan.benchmarks))


def test_a_plan_is_kept_without_its_secrets(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "x")
    plan = with_environment(stored("a"), API_KEY="s3cr3t", URL="http://me:s3cr3t@host", SIZE="3", HOME=None)
    folder.write_plan(plan)
    assert "s3cr3t" not in (folder.path / "plan.json").read_text()
    read = folder.read_plan()
    assert (read.benchmarks[0].env["SIZE"], read.benchmarks[0].env["HOME"]) == ("3", None)
    assert read.left_out == ("API_KEY", "URL")
    assert read.same_target(plan.benchmarks, plan.options)


@pytest.mark.parametrize("text", ["[]", '{"version": 1}', "{"])
def test_a_damaged_plan_is_refused_in_words(tmp_path: Path, text: str) -> None:
    folder = RunFolder.create(tmp_path, "x")
    (folder.path / "plan.json").write_text(text)
    with pytest.raises(InvalidInput, match=r"plan\.json"):
        folder.read_plan()


def test_a_run_is_as_old_as_its_plan_says_and_not_as_its_file(tmp_path: Path) -> None:
    folders = []
    for day in (14, 13, 15):
        folder = RunFolder.create(tmp_path, f"d{day}")
        folder.write_plan(msgspec.structs.replace(stored("a"), started=f"2020-11-{day}T10:00:00+00:00"))
        folders.append(folder)
    assert [f.id[:3] for f in all_runs(tmp_path)] == ["d15", "d14", "d13"]
    (folders[0].path / "plan.json").write_text("{")  # damaged: then the file's time counts, which is now
    assert find_run(tmp_path, "last").id == folders[0].id


def test_what_is_no_plan_file_is_no_run_and_is_not_waited_for(tmp_path: Path) -> None:
    for name in ("pipe", "folder", "nothing"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "pipe" / "plan.json")
    (tmp_path / "folder" / "plan.json").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "broken").symlink_to("nowhere")
    assert all_runs(tmp_path) == []
    with pytest.raises(InvalidInput, match="no run called"):
        find_run(tmp_path, str(tmp_path / "pipe"))


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("train", ["train.2026-11-15_10:00:02", "train.2026-11-15_10:00:00_2"]),
        ("train2", ["train2.2026-11-15_10:00:03"]),
        ("train.v2", ["train.v2.2026-11-15_10:00:04"]),
        ("train.2026-11-15_10:00:0", ["train.2026-11-15_10:00:02", "train.2026-11-15_10:00:00_2"]),
        ("train.2026-11-15_10:00:02", ["train.2026-11-15_10:00:02"]),
        ("tra", IDS),
        ("", []),
        ("x", []),
    ],
)
def test_a_word_means_an_id_then_a_name_then_a_beginning(word: str, meant: list[str]) -> None:
    assert named_so(word, IDS) == meant


def test_a_run_that_is_being_made_is_told_without_touching_its_folder(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "x")
    assert not folder.is_being_made()
    assert list(folder.path.iterdir()) == []
    with folder.locked():
        assert folder.is_being_made()
    assert not folder.is_being_made()
