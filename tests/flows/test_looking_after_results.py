"""Looking after results through the command line: what is said when something is wrong, and that the rest goes on."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
from pathlib import Path

import pytest
from command_line import CommandLine
from kept_runs import Kept
from processes import wait_for

IMPORTS = Path(__file__).parents[1] / "compat" / "imports"


@pytest.fixture
def kept(bw: CommandLine) -> Kept:
    return Kept(bw.base)


def test_a_baseline_is_set_listed_and_removed(bw: CommandLine, kept: Kept) -> None:
    folder = kept("x")
    assert bw("baseline", "set", "main").stdout == f"main: {folder.id}\n"
    assert bw("baseline", "remove", "main").stdout == "removed: main\n"
    assert json.loads(bw("baseline", "list", "--json").stdout) == {}
    assert "no baseline is called 'main'" in bw("baseline", "remove", "main", code=2).stderr
    assert "cannot be the name of a baseline" in bw("baseline", "set", "", code=2).stderr
    assert folder.path.is_dir()


def test_a_baseline_that_the_store_cannot_take_is_set_here_and_that_is_said(bw: CommandLine, kept: Kept) -> None:
    folder = kept("x")
    (bw.cwd / "no.db").write_text("this is no database")
    done = bw("baseline", "set", "main", "--store", "no.db", code=3)
    assert done.stdout == f"main: {folder.id}\n"
    assert "is set here, but not in the store" in done.stderr
    assert "removed here, but not from the store" in bw("baseline", "remove", "main", "--store", "no.db", code=3).stderr
    assert json.loads(bw("baseline", "list", "--json").stdout) == {}


def test_folders_that_are_no_runs_keep_no_others_from_being_ingested(
    bw: CommandLine, kept: Kept, tmp_path: Path
) -> None:
    folder = kept("x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    words = [str(tmp_path / name) for name in ("nothing", "file", "empty")]
    done = bw("import", "benchwright", *words, str(folder.path), code=2)
    assert done.stdout == f"{folder.path}: ingested\n"
    assert [line.partition(": ")[2].partition(": ")[2][:25] for line in done.stderr.splitlines()] == [
        "no such folder; check the",
        "no such folder; check the",
        "no plan.json: this is not",
    ]


@pytest.mark.compat
def test_files_that_hold_no_result_are_said_and_the_others_imported(bw: CommandLine, tmp_path: Path) -> None:
    empty, cut = tmp_path / "empty.json", tmp_path / "cut.json"
    empty.write_text('{"machine_info": {}, "benchmarks": []}')
    cut.write_text('{"results": [')
    done = bw("import", str(empty), str(cut), str(IMPORTS / "hyperfine.json"), code=2)
    assert "no results in it" in done.stderr
    assert "this is not JSON" in done.stderr
    assert "2 benchmarks, imported" in done.stdout or "1 benchmarks, imported" in done.stdout
    assert bw("import", str(empty), code=1).stdout == ""


def test_what_was_deleted_is_said_even_if_the_store_still_lists_it(bw: CommandLine, kept: Kept) -> None:
    folders = [kept("x"), kept("y"), kept("z")]
    (bw.base / "store.db").write_text("this is no database")
    done = bw("runs", "delete", folders[0].id, "--yes", code=3)
    assert f"deleted: {folders[0].id}" in done.stdout
    assert "still listed elsewhere" in done.stderr
    assert "deleted 2 runs" in bw("runs", "prune", "--max-size", "0", "--yes", code=3).stdout
    assert not any(folder.path.exists() for folder in folders)


def test_a_misspelt_command_of_runs_is_told_the_nearest(bw: CommandLine) -> None:
    assert "Did you mean 'delete'?" in bw("runs", "delte", "x", code=2).stderr


@pytest.mark.long
def test_rebuilding_and_ingesting_at_once_are_all_well(bw: CommandLine, kept: Kept) -> None:
    folders = [kept("x") for _ in range(4)]
    jobs = [["store", "rebuild"]] + [["import", "benchwright", *(str(f.path) for f in folders)]] * 2
    started = [subprocess.Popen(bw.argv(*job), env=bw.env, cwd=bw.cwd, stderr=subprocess.PIPE) for job in jobs]
    ended = [process.communicate(timeout=600)[1].decode() for process in started]
    assert not [text for text in ended if "benchwright:" in text]
    assert "intact" in bw("store", "check").stdout
    assert len(json.loads(bw("runs", "--json").stdout)) == 4
    assert [p.name for p in bw.base.glob("store.db*")] == ["store.db"]


def test_looking_makes_no_folder_and_no_store(bw: CommandLine) -> None:
    assert bw("runs").stdout == "no runs\n"
    assert "no store yet" in bw("store", "check", code=3).stderr
    assert "no runs in" in bw("report", code=2).stderr
    assert not bw.base.exists()


def test_logs_that_do_not_end_their_last_line_are_kept_apart(bw: CommandLine) -> None:
    bw("run", "-c", "printf one", "-c", "printf two")
    assert bw("logs").stdout == "==> printf one.D0 <==\none\n==> printf two.D0 <==\ntwo"
    assert bw("logs", "last", "printf two").stdout == "two"


def test_an_empty_annotation_is_none(bw: CommandLine, kept: Kept) -> None:
    kept("x")
    bw("runs", "annotate", "last", "words")
    assert "annotation removed" in bw("runs", "annotate", "last", "").stdout
    assert json.loads(bw("runs", "--json").stdout)[0]["annotation"] is None


@pytest.mark.compat
def test_several_runs_are_one_document(bw: CommandLine, kept: Kept) -> None:
    ids = [kept("x").id, kept("y").id]
    body = json.loads(bw("report", *ids, "--format", "json").stdout)
    assert (body["format"], body["version"]) == ("benchwright-report", 1)
    assert [run["id"] for run in body["runs"]] == ids
    assert body["runs"][0] == json.loads(bw("report", ids[0], "--format", "json").stdout)
    assert bw("report", *ids, "--format", "html").stdout.count("<html") == 1
    rows = list(csv.DictReader(bw("report", *ids, "--format", "csv").stdout.splitlines()))
    assert list(dict.fromkeys(row["run"] for row in rows)) == ids
    assert "\n\n### `y." in bw("report", *ids, "--format", "markdown").stdout
    assert bw("report", *ids).stdout.splitlines()[0] == f" {ids[0]}"
    assert "holds one run" in bw("report", *ids, "--format", "driver", code=2).stderr


def test_a_run_named_twice_counts_once(bw: CommandLine, kept: Kept) -> None:
    folder = kept("x")
    bw("export", "x", folder.id, "last", "--output", "samples.csv")
    bw("export", "x", "--output", "once.csv")
    assert (bw.cwd / "samples.csv").read_text() == (bw.cwd / "once.csv").read_text()
    assert bw("export", "-o", "-", "--format", "csv").stdout == (bw.cwd / "once.csv").read_text()
    assert "unknown format" in bw("export", "-o", "-", code=2).stderr
    assert not (bw.cwd / "-").exists()


def test_runs_with_workers_are_compared_by_the_numbers_of_their_reports(bw: CommandLine) -> None:
    (bw.cwd / "tasks.cfg").write_text(
        "[t]\npatterns = ['speed=(\\S+)', 'speed=(\\S+)']\nmetrics = ['all', 'sum']\n"
        "compute_method = ['average_aggregate', 'total']\n"
        "command_to_execute = sh -c 'echo speed=10; echo speed=30'\n"
    )
    for name, workers in (("a", "4"), ("b", "2")):
        bw("run", "tasks.cfg", "--repeat", "6", "--run-name", name, env={"DEEPLEARNING_WORKERS_COUNT": workers})
    body = json.loads(bw("compare", "a", "b", "--json").stdout)
    assert {e["metric"]: (e["control"], e["treatment"]) for e in body["effects"]} == {
        "all": (80.0, 40.0),
        "sum": (10.0, 20.0),
    }
    assert [d["what"] for d in body["differences"]] == ["workers"]


def test_a_metric_the_treatment_lost_or_measures_in_another_unit_fails_ci(bw: CommandLine) -> None:
    program = ["sh", "-c", "echo speed=5; echo loss=1"]
    common = ["run", "--repeat", "6", "--name", "p"]
    bw(*common, "--run-name", "both", "--metric", "speed=kv:speed", "--metric", "loss=kv:loss", "--", *program)
    bw(*common, "--run-name", "one", "--metric", "loss=kv:loss", "--", *program)
    bw(*common, "--run-name", "unit", "--metric", "speed[ms]=kv:speed", "--metric", "loss=kv:loss", "--", *program)
    lost = bw("compare", "both", "one", "--fail-on", "regressed", code=1)
    assert "p speed: only in control" in lost.stdout
    bw("compare", "one", "both", "--fail-on", "regressed")
    other = bw("compare", "both", "unit", "--fail-on", "regressed", code=1)
    assert "measured in no unit in control, measured in ms in treatment; not compared" in " ".join(other.stdout.split())
    assert json.loads(bw("compare", "both", "unit", "--json").stdout)["lost"]
    bw("compare", "both", "--between", "p", "p", code=2)


def test_a_run_is_listed_while_it_is_made_and_after_it_was_killed_or_interrupted(bw: CommandLine) -> None:
    started = {}
    for name in ("killed", "interrupted"):
        argv = bw.argv("run", "--run-name", name, "--", "sleep", "60")
        started[name] = subprocess.Popen(
            argv, env=bw.env, cwd=bw.cwd, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
    assert wait_for(lambda: listed(bw) == dict.fromkeys(started, "running"))
    started["killed"].kill()
    started["interrupted"].send_signal(signal.SIGINT)
    for process in started.values():
        process.wait(timeout=600)
    assert listed(bw) == {"killed": "killed", "interrupted": "interrupted"}
    said = bw("runs", "--status", "killed").stdout
    assert "   killed after 0 of 1 launches\n   continue: bw run --resume=killed." in said
    assert "interrupted" not in said
    assert not (bw.base / "store.db").exists()


def listed(bw: CommandLine) -> dict[str, str]:
    return {row["name"]: row["status"] for row in json.loads(bw("runs", "--json").stdout)}


def test_ten_runs_of_two_bases_begun_in_the_same_second_are_all_in_a_shared_store(
    bw: CommandLine, tmp_path: Path
) -> None:
    shared = str(tmp_path / "shared.db")
    for base in ("one", "two"):
        here = Kept(tmp_path / base)
        for _ in range(5):
            bw("import", "benchwright", str(here("ci").path), "--store", shared)
    rows = json.loads(bw("runs", "--store", shared, "--json").stdout)
    assert len(rows) == len({row["uid"] for row in rows}) == 10
    assert len({row["id"] for row in rows}) == 5
    said = bw("show", rows[0]["id"], "--store", shared, code=2).stderr
    assert all(row["uid"] in said for row in rows if row["id"] == rows[0]["id"])
    assert json.loads(bw("show", rows[0]["uid"], "--store", shared, "--json").stdout)["uid"] == rows[0]["uid"]
    checked = bw("store", "check", "--store", shared).stdout
    assert checked.count("note: 2 runs are called") == 5
    shown = bw("runs", "--store", shared).stdout
    assert all(row["uid"] in shown for row in rows)


def test_a_number_changed_in_a_run_json_or_a_stream_is_seen_when_folders_are_checked(
    bw: CommandLine, kept: Kept
) -> None:
    folders = {name: kept(name) for name in ("fine", "edited", "stream", "gone", "new")}
    for name, folder in folders.items():
        if name != "new":
            bw("import", "benchwright", str(folder.path))
    assert "intact" in bw("store", "check").stdout
    body = json.loads((folders["edited"].path / "run.json").read_text())
    body["results"][0]["metrics"][0]["value"] *= 2
    (folders["edited"].path / "run.json").write_text(json.dumps(body))
    (stream,) = folders["stream"].path.glob("*.data")
    stream.write_text(stream.read_text().replace("[100000000, 200000000]", "[100000000, 250000000]"))
    (folders["gone"].path / "machine.json").unlink()
    said = bw("store", "check", "--folders", code=1).stdout.splitlines()
    about = {name: [line for line in said if line.startswith(f"{folder.id}: ")] for name, folder in folders.items()}
    assert about["fine"] == []
    assert any("disagrees with the streams" in line for line in about["edited"])
    assert any("changed after it was stored" in line for line in about["stream"])
    assert any("disagrees with the streams" in line for line in about["stream"])
    assert any("machine.json" in line for line in about["gone"])
    assert any("not in the store; add it" in line for line in about["new"])
