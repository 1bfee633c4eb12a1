"""The store made anew: nothing is lost, and nothing of others is touched."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kept_runs import Kept
from postgresql import Server

from benchwright.core.errors import ForeignStore, InvalidInput, NewerStore, StoreTrouble
from benchwright.kinds.registry import kind_of
from benchwright.results.kept_runs import Results
from benchwright.results.rebuild import rebuild
from benchwright.runs.read_run import read_run
from benchwright.store import connection as connecting
from benchwright.store.base import RunFilter


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path / "base")


def problems(results: Results) -> dict[str | None, str | None]:
    return {outcome.run: outcome.problem for outcome in rebuild(results)}


def listed(results: Results) -> set[str]:
    return {row.id for row in results.store.runs(RunFilter(), limit=None)}


def files(base: Path) -> set[str]:
    return {p.name for p in base.glob("*store*")}


def test_what_only_the_old_store_has_is_carried_over(kept: Kept, tmp_path: Path) -> None:
    here, far, gone = kept("here"), Kept(tmp_path / "other")("far"), Kept(tmp_path / "third")("gone")
    with kept.results() as results:
        for folder in (here, far, gone):
            results.ingest(folder)
        before = results.store.load(gone.unique_id)
        gone.path.rename(tmp_path / "away")
        results.store.annotate(before.uid, "only the store has this")
        results.store.set_baseline("shared", before.uid)
        assert set(problems(results).values()) == {None}
        assert listed(results) == {here.id, far.id, gone.id}
        assert results.store.load(gone.id) == before
        assert results.annotation(before) == "only the store has this"
        assert results.store.baselines() == {"shared": before.uid}
    assert files(kept.base.path) == {"store.db"}


def test_one_bad_folder_keeps_no_other_out(kept: Kept) -> None:
    fine, damaged, odd = kept("fine"), kept("damaged"), kept("odd")
    (damaged.path / "plan.json").write_text("{")
    (odd.path / "packages.json").unlink(missing_ok=True)
    (odd.path / "machine.json").unlink()
    with kept.results() as results:
        found = problems(results)
        assert listed(results) == {fine.id}
    assert found[fine.id] is None
    assert "plan.json" in str(found[damaged.id])
    assert "machine.json" in str(found[odd.id])


@pytest.mark.parametrize("content", [b"my precious notes", b"\x00" * 5000, b"SQL"])
def test_a_file_of_something_else_is_not_touched(kept: Kept, tmp_path: Path, content: bytes) -> None:
    kept("x")
    notes = tmp_path / "notes.txt"
    notes.write_bytes(content)
    with kept.results(str(notes)) as results, pytest.raises(ForeignStore):
        problems(results)
    assert notes.read_bytes() == content
    assert sorted(p.name for p in tmp_path.iterdir()) == ["base", "notes.txt"]


def test_a_database_of_another_program_is_not_touched(kept: Kept, tmp_path: Path) -> None:
    kept("x")
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    before = path.read_bytes()
    with kept.results(f"sqlite:///{path}") as results, pytest.raises(ForeignStore, match="table 't'"):
        problems(results)
    assert path.read_bytes() == before


def test_a_store_of_a_newer_version_is_not_touched(kept: Kept) -> None:
    folder = kept("x")
    path = kept.base.path / "store.db"
    with kept.results() as results:
        results.ingest(folder)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE benchwright_version SET version_num = '9999'")
    connection.close()
    before = path.read_bytes()
    with kept.results() as results, pytest.raises(NewerStore):
        problems(results)
    assert path.read_bytes() == before


def test_what_a_killed_rebuild_left_is_removed(kept: Kept) -> None:
    kept("x")
    for left in ("store.db.rebuilding", "store.db.rebuilding-wal"):
        (kept.base.path / left).write_text("half")
    with kept.results() as results:
        problems(results)
    assert files(kept.base.path) == {"store.db"}


def test_a_store_that_others_have_open_is_not_taken_away_from_them(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "BUSY_TIMEOUT_S", 0.3)
    first = kept("first")
    with kept.results() as results, kept.results() as other:
        other.ingest(first)
        with pytest.raises(StoreTrouble, match="in use by another process"):
            problems(results)
        assert other.ingest(kept("late"))
        assert listed(other) == listed(results)
    assert files(kept.base.path) == {"store.db"}


def test_of_two_that_rebuild_one_goes_on_and_the_other_says_why_not(kept: Kept) -> None:
    first = kept("first")
    with kept.results() as one, kept.results() as two:
        making = rebuild(one)
        assert next(making).run == first.id
        with pytest.raises(StoreTrouble, match="is being rebuilt already"):
            problems(two)
        assert list(making) == []
        assert listed(two) == {first.id}
    assert files(kept.base.path) == {"store.db"}


def test_who_has_a_store_open_that_was_replaced_goes_on_with_the_new_one(kept: Kept) -> None:
    first = kept("first")
    with kept.results() as writer:
        writer.ingest(first)
        for path in kept.base.path.glob("store.db*"):
            path.rename(path.with_name(f"away-{path.name}"))
        late = kept("late")
        assert writer.ingest(late)
        assert listed(writer) == {late.id}


def test_an_empty_base_gets_an_empty_store(kept: Kept) -> None:
    with kept.results() as results:
        assert problems(results) == {}
        assert listed(results) == set()


def test_a_folder_is_refused_as_a_store(kept: Kept, tmp_path: Path) -> None:
    with kept.results(str(tmp_path)) as results, pytest.raises(InvalidInput, match="is a folder"):
        problems(results)


def test_the_bases_own_store_is_made_anew_whatever_it_holds_and_what_it_held_is_kept(kept: Kept) -> None:
    folder = kept("x")
    (kept.base.path / "store.db").write_text("scribbled over")
    with kept.results() as results:
        assert "store.db.damaged" in str(problems(results)[None])
        assert listed(results) == {folder.id}
    assert (kept.base.path / "store.db.damaged").read_text() == "scribbled over"


def test_a_run_that_ends_meanwhile_is_in_the_new_store(kept: Kept) -> None:
    first = kept("first")
    with kept.results() as results:
        results.ingest(first)
        late = None
        for outcome in rebuild(results):
            if late is None and outcome.run == first.id:
                late = kept("late")
                with kept.results() as another:
                    another.ingest(late)  # into the store that is about to be replaced
        assert late is not None
        assert listed(results) == {first.id, late.id}


def test_an_older_store_is_read_too(kept: Kept, tmp_path: Path) -> None:
    from first_store import make_first_store

    gone = msgspec.structs.replace(read_run(Kept(tmp_path / "other")("gone"), kind_of), folder="/nowhere")
    path = kept.base.path / "store.db"
    path.parent.mkdir()
    make_first_store(str(path), [gone])
    with kept.results() as results:
        assert problems(results) == {gone.id: None}
        assert results.store.load(gone.id) == gone
        assert results.store.baselines() == {"main": gone.uid}


DAMAGE = {
    "one byte of the schema": lambda raw: (i := raw.index(b"CREATE TABLE runs") + 14, raw[:i] + b"\xff" + raw[i + 1 :])[
        1
    ],
    "its first page": lambda raw: b"\x00" * 4096 + raw[4096:],
    "its header": lambda raw: raw[:16] + b"\xff" * 84 + raw[100:],
    "its end": lambda raw: raw[: len(raw) // 2],
    "nothing but the header": lambda raw: raw[:100],
    "pages in the middle": lambda raw: raw[: len(raw) // 3] + b"\xa5" * (len(raw) // 3) + raw[2 * len(raw) // 3 :],
    "everything": lambda raw: b"\xa5" * len(raw),
    "empty": lambda raw: b"",
}


@pytest.mark.parametrize("what", DAMAGE)
def test_the_store_is_rebuilt_whatever_is_damaged(kept: Kept, what: str) -> None:
    folders = [kept("x", repeat=2) for _ in range(5)]
    path = kept.base.path / "store.db"
    with kept.results() as results:
        for folder in folders:
            results.ingest(folder)
        results.share_baseline("main", results.set_baseline("main", folders[0].id))
    path.write_bytes(DAMAGE[what](path.read_bytes()))
    with kept.results() as results:
        problems(results)
        assert listed(results) == {folder.id for folder in folders}
        assert results.store.check() == []
        assert results.store.baselines() == {"main": folders[0].unique_id}


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    "make",
    [make_fifo, lambda path: path.symlink_to("/dev/zero")],
    ids=["a pipe", "a device"],
)
def test_what_stands_in_the_place_of_the_bases_store_is_moved_aside(kept: Kept, make: Any) -> None:
    folder = kept("x")
    make(kept.base.path / "store.db")
    with kept.results() as results:
        assert "store.db.damaged" in str(problems(results)[None])
        assert listed(results) == {folder.id}


def test_a_folder_in_the_place_of_the_bases_store_is_refused(kept: Kept) -> None:
    (kept.base.path / "store.db").mkdir(parents=True)
    with kept.results() as results, pytest.raises(InvalidInput, match="is a folder"):
        problems(results)


def test_a_second_damaged_store_is_kept_beside_the_first(kept: Kept) -> None:
    kept("x")
    for content in ("one", "two"):
        (kept.base.path / "store.db").write_text(content)
        with kept.results() as results:
            problems(results)
    assert (kept.base.path / "store.db.damaged").read_text() == "one"
    assert (kept.base.path / "store.db.damaged-2").read_text() == "two"


def test_baselines_that_cannot_be_read_keep_no_run_out(kept: Kept) -> None:
    folder = kept("x")
    (kept.base.path / "baselines.json").write_bytes(b'{"names": "\xff"}')
    with kept.results() as results:
        found = problems(results)
        assert listed(results) == {folder.id}
    assert "baselines.json" in str(found[None])


def test_numbers_that_changed_in_the_store_are_put_right(kept: Kept) -> None:
    folder = kept("x")
    with kept.results() as results:
        results.ingest(folder)
    path = kept.base.path / "store.db"
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE samples SET data = zeroblob(length(data))")
    connection.close()
    with kept.results() as results:
        assert results.store.check()
        problems(results)
        assert results.store.check() == []
        assert results.store.load(folder.id) == read_run(folder, kind_of)


@pytest.mark.xdist_group("postgresql")
def test_a_store_on_a_server_is_put_right_too(kept: Kept, tmp_path: Path, postgresql_server: Server) -> None:
    url = postgresql_server.database()
    here, theirs = kept("here"), Kept(tmp_path / "other")("theirs")
    with kept.results(url) as results:
        for folder in (here, theirs):
            results.ingest(folder)
    postgresql_server.execute("UPDATE samples SET data = data || 'x'::bytea", url)
    with kept.results(url) as results:
        assert problems(results)[here.id] is None
        assert results.store.load(here.id) == read_run(here, kind_of)
        found = results.store.check()
        assert found
        assert all(line.startswith(f"run {theirs.id}: ") for line in found)


@pytest.mark.xdist_group("postgresql")
@pytest.mark.parametrize("damage", ["DROP TABLE samples", "ALTER TABLE runs DROP COLUMN host"])
def test_a_server_whose_tables_are_broken_names_the_way_out(kept: Kept, postgresql_server: Server, damage: str) -> None:
    url = postgresql_server.database()
    folder = kept("here")
    with kept.results(url) as results:
        results.ingest(folder)
    postgresql_server.execute(damage, url)
    with kept.results(url) as results, pytest.raises(StoreTrouble, match="store rebuild --store"):
        problems(results)
