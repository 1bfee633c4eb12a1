"""Deleting and pruning: what goes, what stays, and what is said when the store cannot follow."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kept_runs import Kept
from served_stores import ServedStores
from stored_runs import run

from benchwright.core.errors import InvalidInput, RunFolderBusy, StoreTrouble
from benchwright.results.admin import delete_run, names_of, to_prune
from benchwright.results.kept_runs import FoundRun, Results
from benchwright.results.run_index import list_runs
from benchwright.runs.run_folder import RunFolder
from benchwright.server.tokens import Scope
from benchwright.store.base import RunFilter


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path / "base")


def test_a_base_that_is_reached_by_a_link_is_the_same_base(kept: Kept, tmp_path: Path) -> None:
    folder = kept("x")
    (tmp_path / "link").symlink_to(kept.base.path)
    with Kept(tmp_path / "link").results() as results:
        (name,) = names_of(results, ["x"])
        delete_run(results, name)
    assert not folder.path.exists()


def test_a_store_that_cannot_be_written_keeps_no_run_from_being_deleted(kept: Kept) -> None:
    folders = [kept("x"), kept("y")]
    (kept.base.path / "store.db").write_text("this is no database")
    with kept.results() as results:
        deleted = [delete_run(results, found) for found in names_of(results, [f.id for f in folders])]
    assert all("not a store" in (d.trouble or "") for d in deleted)
    assert all(d.freed_bytes > 1000 for d in deleted)
    assert not any(folder.path.exists() for folder in folders)


def test_a_run_that_is_being_made_is_neither_deleted_nor_pruned(kept: Kept) -> None:
    folder = kept("x")
    with kept.results() as results, folder.locked():
        assert to_prune(results, keep_s=0, max_bytes=0) == []
        (found,) = names_of(results, [folder.id])
        with pytest.raises(RunFolderBusy):
            delete_run(results, found)
    assert folder.path.is_dir()


def test_only_the_link_to_a_run_of_elsewhere_is_deleted(kept: Kept, tmp_path: Path) -> None:
    far = Kept(tmp_path / "other")("far")
    kept.base.runs.mkdir(parents=True)
    (kept.base.runs / far.id).symlink_to(far.path)
    with kept.results() as results:
        delete_run(results, FoundRun(far.id, far.unique_id, RunFolder(kept.base.runs / far.id)))
    assert far.path.is_dir()
    assert list(kept.base.runs.iterdir()) == []


def test_an_id_that_leads_out_of_the_base_deletes_no_folder(kept: Kept, tmp_path: Path) -> None:
    kept("x")
    outside = tmp_path / "base" / "precious"
    outside.mkdir()
    with kept.results() as results:
        delete_run(results, FoundRun("../precious", "../precious", RunFolder(outside)))
    assert outside.is_dir()


def test_what_an_interrupted_deletion_left_is_removed_by_the_next(kept: Kept) -> None:
    folder = kept("x")
    left = kept.base.runs / ".deleted-old"
    (left / "sub").mkdir(parents=True)
    with kept.results() as results:
        delete_run(results, results.find(folder.id))
    assert list(kept.base.runs.iterdir()) == []


def test_the_oldest_are_those_that_were_started_first_whatever_was_done_to_their_files(kept: Kept) -> None:
    folders = [kept("x") for _ in range(3)]
    for age, folder in enumerate(folders):
        os.utime(folder.path / "plan.json", (1e9 - age, 1e9 - age))
    size = sum(p.stat().st_size for p in folders[2].path.iterdir())
    with kept.results() as results:
        assert results.run("last").id == folders[2].id
        assert [f.id for f in to_prune(results, keep_s=None, max_bytes=2 * size + 500)] == [folders[0].id]


def test_one_damaged_folder_hides_no_other_run(kept: Kept) -> None:
    fine, damaged, odd = kept("fine"), kept("damaged"), kept("odd")
    (damaged.path / "plan.json").write_text("{")
    (odd.path / "plan.json").unlink()
    (odd.path / "plan.json").mkdir()
    with kept.results() as results:
        listed = list_runs(results, limit=10)
        assert {row.id: row.status for row in listed.rows} == {fine.id: "ok", damaged.id: "unreadable"}
        assert "plan.json" in str(next(row.problem for row in listed.rows if row.id == damaged.id))


def test_nothing_to_list_makes_nothing(kept: Kept) -> None:
    with kept.results() as results:
        assert list_runs(results, limit=10).rows == []
    assert not kept.base.path.exists()


def test_a_run_of_elsewhere_is_only_forgotten(kept: Kept, tmp_path: Path) -> None:
    far = Kept(tmp_path / "other")("far")
    with kept.results() as results:
        results.ingest(far)
        with pytest.raises(InvalidInput, match="is not in"):
            names_of(results, [str(far.path)])
        for name in names_of(results, ["far"]):
            delete_run(results, name)
        assert results.store.runs(RunFilter()) == []
    assert far.path.is_dir()


@pytest.mark.parametrize(
    "kind", ["sqlite", "http", pytest.param("postgresql", marks=pytest.mark.xdist_group("postgresql"))]
)
def test_old_runs_of_others_are_pruned_from_a_store_that_is_named(
    kept: Kept, tmp_path: Path, kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ServedStores(tmp_path) as served:
        monkeypatch.setenv("BENCHWRIGHT_TOKEN", served.token)
        url = {
            "sqlite": lambda: str(tmp_path / "shared.db"),
            "http": lambda: served.serve(tmp_path / "shared.db"),
            "postgresql": lambda: request.getfixturevalue("postgresql_server").database(),
        }[kind]()
        with Results(kept.base, url) as results:
            for number, started in enumerate(("2020-01-01T00:00:00+00:00", "2020-01-02", "not a time", "2999-01-01")):
                results.store.ingest(run(f"far.{number}", started=started), digest="1")
            results.store.set_baseline("main", "far.1")
            assert to_prune(results, keep_s=86400.0, max_bytes=None) == []
            found = to_prune(results, keep_s=86400.0, max_bytes=None, of_store=True)
            assert [each.id for each in found] == ["far.0"]
            delete_run(results, found[0])
            assert {row.id for row in results.store.runs(RunFilter())} == {"far.1", "far.2", "far.3"}
            if kind == "http":
                monkeypatch.setenv("BENCHWRIGHT_TOKEN", served.tokens.create("writer", Scope.WRITE))
                with Results(kept.base, url) as writer, pytest.raises(StoreTrouble, match="this needs admin"):
                    delete_run(writer, FoundRun("far.2", "far.2", None))
                assert results.store.digest_of("far.2") == "1"
