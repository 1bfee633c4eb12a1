"""Every run is listed, from the moment its folder exists, whatever state it or the store is in."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from damaged_base import IMPORTS
from kept_runs import Kept

from benchwright.results.kept_runs import Results
from benchwright.results.run_index import Listed, list_runs
from benchwright.runs.importers import import_results
from benchwright.runs.run_folder import RunFolder


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path / "base")


def listed(kept: Kept, **wanted: Any) -> Listed:
    with Results(kept.base, str(kept.base.path / "store.db"), patience_s=0.1) as results:
        return list_runs(results, **wanted)


def ids(kept: Kept, **wanted: Any) -> list[str]:
    return [row.id for row in listed(kept, **wanted).rows]


def statuses(kept: Kept) -> dict[str, str]:
    return {row.id.partition(".")[0]: row.status for row in listed(kept).rows}


def said_of(folder: RunFolder, **changes: Any) -> None:
    path = folder.path / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_runs_that_are_not_in_the_store_are_listed_beside_those_that_are(kept: Kept) -> None:
    first, second, third = kept("a"), kept("b"), kept("c")
    with kept.results() as results:
        results.ingest(second)
    rows = listed(kept).rows
    assert [row.id for row in rows] == [third.id, second.id, first.id]
    assert [row.in_store for row in rows] == [False, True, False]
    assert [row.uid for row in rows] == [third.unique_id, second.unique_id, first.unique_id]
    assert {row.status for row in rows} == {"ok"}
    assert all(row.size_bytes > 1000 and row.host == "fake" and row.benchmarks == 1 for row in rows)


def test_how_it_stands_with_a_run_that_is_not_complete_is_told(kept: Kept) -> None:
    folders = {name: kept(name) for name in ("ok", "interrupted", "killed", "older", "fresh", "running", "damaged")}
    said_of(folders["interrupted"], ended=None, status="interrupted", state="interrupted")
    said_of(folders["killed"], ended=None, status="interrupted", state="running")
    (folders["fresh"].path / "run.json").unlink()  # killed before it was first written
    said_of(folders["running"], ended=None, status="interrupted", state="running")
    said_of(folders["older"], ended=None, status="interrupted")
    body = json.loads((folders["older"].path / "run.json").read_text())
    del body["state"]  # as it was before there was such a word
    (folders["older"].path / "run.json").write_text(json.dumps(body))
    (folders["damaged"].path / "plan.json").write_bytes(b'{"format": "\xff')
    with folders["running"].locked():
        assert statuses(kept) == {
            "ok": "ok",
            "interrupted": "interrupted",
            "killed": "killed",
            "older": "interrupted",
            "fresh": "killed",
            "running": "running",
            "damaged": "unreadable",
        }
        assert ids(kept, status="killed") == [folders["fresh"].id, folders["killed"].id]
        assert ids(kept, status="running") == [folders["running"].id]


def test_how_far_a_killed_run_got_is_told_by_its_streams(kept: Kept) -> None:
    folder, ended = kept("x"), kept("y")
    said_of(folder, ended=None, status="interrupted", state="running", results=[])  # older than the streams
    endings = {row.id: row.ending for row in listed(kept).rows}
    whole = f"killed after 1 of 1 launches; continue: bw run --resume={folder.id}"
    assert endings == {folder.id: whole, ended.id: ""}
    for stream in folder.path.glob("*.data"):
        stream.unlink()
    assert listed(kept, status="killed").rows[0].ending.startswith("killed after 0 of 1 launches")
    (folder.path / "jobs.json").write_text("damaged")
    assert listed(kept, status="killed").rows[0].ending.startswith("killed after 0")


def test_a_run_is_listed_before_it_has_a_plan(kept: Kept) -> None:
    planned = kept("planned")
    runs = planned.path.parent
    early = RunFolder.create(runs, "early")
    with early.locked():
        (row,) = listed(kept, name="early*").rows
        assert (row.id, row.status, row.ending) == (early.id, "running", "")
    (row,) = listed(kept, status="killed").rows
    assert (row.id, row.ending) == (early.id, "killed while it was being planned; nothing was measured")
    assert ids(kept) == [early.id, planned.id]
    assert ids(kept, benchmark="*") == [planned.id]
    (runs / "notes").mkdir()  # no run
    (runs / "file").write_text("")
    assert ids(kept) == [early.id, planned.id]


@pytest.mark.parametrize("body", [b"\xff", b"", b"[]", b'{"status": 5}', b'{"status": "ok", "ended": null'])
def test_a_run_json_that_is_damaged_is_not_believed(kept: Kept, body: bytes) -> None:
    folder = kept("x")
    (folder.path / "run.json").write_bytes(body)
    (row,) = listed(kept).rows
    assert (row.status, row.problem) == ("ok", None)  # the streams tell


def test_a_run_that_went_on_after_it_was_put_into_the_store_is_listed_as_it_is_now(kept: Kept) -> None:
    folder = kept("x")
    whole = json.loads((folder.path / "run.json").read_text())
    said_of(folder, ended=None, status="interrupted", state="interrupted")
    with kept.results() as results:
        results.ingest(folder)
    assert statuses(kept) == {"x": "interrupted"}
    (folder.path / "run.json").write_text(json.dumps(whole))
    assert statuses(kept) == {"x": "ok"}


def locked(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("BEGIN EXCLUSIVE")
    return connection


def newer(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("UPDATE benchwright_version SET version_num = '9999'")
    return connection


def older(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("UPDATE benchwright_version SET version_num = '0002'")
    return connection


def scribbled(path: Path) -> sqlite3.Connection:
    raw = bytearray(path.read_bytes())
    raw[raw.index(b"CREATE TABLE runs") + 14] = 0xFF
    path.write_bytes(raw)
    return sqlite3.connect(":memory:")


@pytest.mark.parametrize(
    ("spoil", "said"), [(locked, "locked"), (newer, "newer"), (older, "store migrate"), (scribbled, "damaged")]
)
def test_a_store_that_cannot_be_used_hides_no_run_of_the_base(kept: Kept, spoil: Any, said: str) -> None:
    folders = [kept("a"), kept("b")]
    with kept.results() as results:
        results.ingest(folders[0])
    connection = spoil(kept.base.path / "store.db")
    try:
        found = listed(kept)
    finally:
        connection.close()
    assert [row.id for row in found.rows] == [folders[1].id, folders[0].id]
    assert said in str(found.trouble)


@pytest.mark.compat
def test_imported_runs_are_listed_with_and_without_a_store(kept: Kept) -> None:
    with kept.results() as results:
        for run in import_results(IMPORTS / "hyperfine.json").runs:
            results.keep(run)
    (with_store,) = listed(kept).rows
    for path in kept.base.path.glob("store.db*"):
        path.unlink()
    (without,) = listed(kept).rows
    for name in ("id", "uid", "name", "started", "status", "host", "labels", "benchmarks", "failed"):
        assert getattr(with_store, name) == getattr(without, name)
    next((kept.base.path / "imports").glob("*.json")).write_bytes(b'{"runs": "\xff"}')
    (row,) = listed(kept).rows
    assert (row.status, row.id) == ("unreadable", with_store.id)


def test_filters_mean_the_same_on_the_disk_and_in_the_store(kept: Kept) -> None:
    folders = [kept("train", repeat=2), kept("trial"), kept("x")]
    folders[1].write_annotation("Before the Fix")
    wanted: list[dict[str, Any]] = [
        {"name": "tr*"},
        {"name": "train.20*"},
        {"benchmark": "b"},
        {"benchmark": "c"},
        {"text": "BEFORE"},
        {"text": "nothing of the kind"},
        {"machine": "fake"},
        {"machine": "nowhere"},
        {"since": "2026-11-15T10:00:01+00:00"},
        {"until": "2026-11-15T10:00:01+00:00"},
        {"until": "2026-11-15"},
        {"labels": {"who": "me"}},
        {"tags": ("mine",)},
        {"id": folders[0].id},
        {"status": "ok"},
        {"status": "failed"},
        {"limit": 2},
    ]
    on_disk = [ids(kept, **where) for where in wanted]
    with kept.results() as results:
        for folder in folders:
            results.ingest(folder)
    assert all(row.in_store for row in listed(kept).rows)
    assert on_disk == [ids(kept, **where) for where in wanted]
    assert on_disk[0] == [folders[1].id, folders[0].id]
    assert on_disk[4] == [folders[1].id]


def test_two_runs_that_are_called_the_same_are_both_listed(kept: Kept, tmp_path: Path) -> None:
    ours, theirs = kept("ci"), Kept(tmp_path / "other")("ci")
    assert ours.id == theirs.id
    with kept.results() as results:
        results.ingest(theirs)
    assert {row.uid for row in listed(kept).rows} == {ours.unique_id, theirs.unique_id}
