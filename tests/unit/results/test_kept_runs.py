"""Kept results: which run a word means, and that neither the store nor a damaged folder changes the answer in silence."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import msgspec
import pytest
from kept_runs import Kept

from benchwright.core.errors import InvalidInput
from benchwright.kinds.registry import kind_of
from benchwright.report.html.reporter import HtmlReporter
from benchwright.report.markdown import MarkdownReporter
from benchwright.report.run_json import JsonReporter
from benchwright.results.after_run import report_of
from benchwright.results.run_digest import digest_of
from benchwright.runs.read_run import read_run
from benchwright.runs.run_folder import RunFolder
from benchwright.store.base import RunFilter


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path / "base")


def test_a_name_means_the_newest_run_of_that_name_and_not_one_that_begins_alike(kept: Kept) -> None:
    older, newer, _, _ = kept("train"), kept("train"), kept("train2"), kept("train.v2")
    with kept.results() as results:
        assert results.run("train").id == newer.id != older.id
        assert results.run("train2").name.startswith("train2.20")
        assert results.find("trai").id.startswith("train.v2")


def test_what_is_only_in_the_store_is_found_by_its_name_too(kept: Kept) -> None:
    run = msgspec.structs.replace(
        read_run(kept("x"), kind_of), id="import.tool.1", uid="", name="timings", folder="/nowhere/timings.json"
    )
    with kept.results() as results:
        results.keep(run)
        assert results.run("timings").id == results.run("import.tool").id == "import.tool.1"


def test_a_run_whose_folder_is_damaged_is_shown_from_the_store_and_that_is_said(kept: Kept) -> None:
    folder = kept("x")
    with kept.results() as results:
        results.ingest(folder)
        (folder.path / "plan.json").write_text("{")
        shown = results.run(folder.id)
    assert "cannot be read" in shown.notes[-1].text
    assert shown.results[0].launches


def test_a_damaged_run_that_the_store_does_not_have_is_an_error_and_not_another_run(kept: Kept) -> None:
    fine, damaged = kept("a"), kept("b")
    with kept.results() as results:
        results.ingest(fine)
        (damaged.path / "machine.json").unlink()
        with pytest.raises(InvalidInput, match=r"machine\.json"):
            results.run("last")


@pytest.mark.parametrize("body", ["[]", '{"notes": "x"}', '{"notes": [{"bogus": 1}], "ended": 5}', "{"])
def test_a_run_json_edited_by_hand_changes_no_result(kept: Kept, body: str) -> None:
    folder = kept("x")
    before = read_run(folder, kind_of)
    (folder.path / "run.json").write_text(body)
    after = read_run(folder, kind_of)
    assert (after.results, after.notes, after.ended) == (before.results, (), None)


def test_the_digest_counts_run_json_and_never_waits_for_a_pipe(kept: Kept) -> None:
    folder = kept("x")
    before = digest_of(folder)
    os.mkfifo(folder.path / "foreign.data")
    (folder.path / "gone.data").symlink_to("nowhere")
    (folder.path / "folder.data").mkdir()
    assert digest_of(folder) == before
    (folder.path / "run.json").write_text("{}")
    assert digest_of(folder) != before


def test_looking_makes_no_store(kept: Kept) -> None:
    with kept.results() as results:
        assert results.baselines() == {}
        assert results.only_in_store("x") == []
        with pytest.raises(InvalidInput, match="no runs"):
            results.run("last")
    assert not kept.base.path.exists()


def test_a_store_that_cannot_be_asked_is_said_where_no_folder_is_found(kept: Kept) -> None:
    kept("x")
    with kept.results(store="postgresql://nobody@127.0.0.1:1/none") as results:
        with pytest.raises(InvalidInput, match=r"no run called 'y'.*cannot be reached"):
            results.run("y")
        assert results.run("x").results


def test_a_run_ingested_from_elsewhere_is_annotated_where_it_is_and_read_from_there(kept: Kept, tmp_path: Path) -> None:
    from benchwright.results.admin import annotate_run

    other = Kept(tmp_path / "other")("far")
    with kept.results() as results:
        results.ingest(other)
        annotate_run(results, "far", "a note")
        far = read_run(other, kind_of)
        assert other.read_annotation() == results.annotation(far) == "a note"
        found = results.elsewhere(far.uid)
        assert found is not None
        assert found.path == other.path
        other.path.rename(tmp_path / "away")
        assert results.elsewhere(far.uid) is None
        assert results.annotation(far) == "a note"


def same_names(kept: Kept, tmp_path: Path) -> tuple[RunFolder, RunFolder]:
    """Of two base folders: the same name, begun in the same second."""
    ours, theirs = kept("ci", (0.1,)), Kept(tmp_path / "other")("ci", (0.2,))
    assert ours.id == theirs.id
    return ours, theirs


def test_runs_of_the_same_name_and_second_keep_each_their_place_in_a_shared_store(kept: Kept, tmp_path: Path) -> None:
    ours, theirs = same_names(kept, tmp_path)
    with kept.results() as results:
        assert results.ingest(ours)
        assert results.ingest(theirs)
        assert not results.ingest(ours)
        assert {row.uid for row in results.store.runs(RunFilter())} == {ours.unique_id, theirs.unique_id}
        assert results.store.load(ours.unique_id) == read_run(ours, kind_of)
        assert results.store.load(theirs.unique_id) == read_run(theirs, kind_of)
        assert results.run("ci").uid == ours.unique_id  # what is here is meant first
        assert results.run(theirs.unique_id[:10]).uid == theirs.unique_id
        assert [name for name in results.store.duplicates() if "2 runs are called" in name]


def test_a_name_that_two_runs_of_a_store_share_is_said_with_their_ids(kept: Kept, tmp_path: Path) -> None:
    ours, theirs = same_names(kept, tmp_path)
    with Kept(tmp_path / "third").results(str(tmp_path / "shared.db")) as results:
        for folder in (ours, theirs):
            results.ingest(folder)
        with pytest.raises(InvalidInput, match=f"2 runs are called.*{theirs.unique_id}") as caught:
            results.run(ours.id)
        assert ours.unique_id in str(caught.value)
        runs = results.each([ours.unique_id, theirs.unique_id])
        assert [run.id for run in runs] == [f"{f.id} ({f.unique_id[:8]})" for f in (ours, theirs)]


def without_uid(folder: RunFolder) -> RunFolder:
    """As runs were before they had one."""
    plan = folder.path / "plan.json"
    plan.write_text(plan.read_text().replace(f'"uid": "{folder.unique_id}"', '"uid": ""'))
    return RunFolder(folder.path)


def test_a_run_without_a_uid_does_not_take_the_place_of_another_machines(kept: Kept, tmp_path: Path) -> None:
    ours, theirs = map(without_uid, same_names(kept, tmp_path))
    machine = theirs.read_machine()
    assert machine is not None
    theirs.write_machine(msgspec.structs.replace(machine, hostname="another"))
    with kept.results() as results:
        results.ingest(ours)
        with pytest.raises(InvalidInput, match="already has a run with this id"):
            results.ingest(theirs)
        assert [row.host for row in results.store.runs(RunFilter())] == [machine.hostname]


def test_a_copy_that_was_changed_does_not_take_the_place_of_its_original(kept: Kept, tmp_path: Path) -> None:
    folder = kept("x")
    copy = RunFolder(Path(shutil.copytree(folder.path, tmp_path / folder.id)))
    with kept.results() as results:
        assert results.ingest(folder)
        assert not results.ingest(copy)  # as long as it is the same
        (copy.path / "annotation.json").write_text('{"text": "mine"}')
        with pytest.raises(InvalidInput, match="copy of"):
            results.ingest(copy)
        shutil.rmtree(folder.path)
        assert results.ingest(copy)
        assert [row.folder for row in results.store.runs(RunFilter())] == [str(copy.path)]


def test_eight_who_set_baselines_at_once_lose_none(kept: Kept) -> None:
    folder = kept("x")
    names = [f"n{i}" for i in range(8)]

    def set_one(name: str) -> None:
        with kept.results() as results:
            results.set_baseline(name, folder.id)

    threads = [threading.Thread(target=set_one, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with kept.results() as results:
        assert results.baselines() == dict.fromkeys(names, folder.unique_id)


@pytest.mark.parametrize("name", ["", "  ", "two\nlines", "\x1b[31m"])
def test_a_baseline_that_nobody_could_name_is_refused(kept: Kept, name: str) -> None:
    folder = kept("x")
    with kept.results() as results, pytest.raises(InvalidInput, match="name of a baseline"):
        results.set_baseline(name, folder.id)


def test_a_removed_baseline_is_gone_from_the_file_and_the_store(kept: Kept) -> None:
    folder = kept("x")
    with kept.results() as results:
        for name in ("main", "other"):
            results.share_baseline(name, results.set_baseline(name, folder.id))
        results.remove_baseline("main")
        assert results.baselines() == results.store.baselines() == {"other": folder.unique_id}
        with pytest.raises(InvalidInput, match="did you mean 'other'"):
            results.remove_baseline("othr")


def test_a_baseline_that_only_a_shared_store_has_can_be_removed(kept: Kept) -> None:
    folder = kept("x")
    with kept.results() as results:
        results.ingest(folder)
        results.store.set_baseline("theirs", folder.id)
        results.remove_baseline("theirs")
        assert results.baselines() == {}


def test_the_time_in_a_name_is_filled_in_wherever_the_run_is_shown(kept: Kept) -> None:
    folder = kept("nightly")
    assert folder.read_plan().name == "nightly.{time}"  # as it was given: `matrix --resume` finds it by that
    with kept.results() as results:
        results.ingest(folder)
        run = results.run("nightly")
        assert run.name == run.id == results.row(run.uid).name == results.existing_store.load(run.id).name
    for reporter in (MarkdownReporter(), HtmlReporter(), JsonReporter()):
        text = reporter.render(report_of(run))
        assert run.id in text
        assert "{time}" not in text
