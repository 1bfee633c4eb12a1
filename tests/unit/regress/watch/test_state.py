from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchwright.core.comparison import Verdict
from benchwright.core.errors import BenchwrightError, CannotMeasure, InvalidInput
from benchwright.core.metric import Direction
from benchwright.regress.repository import Commit
from benchwright.regress.watch.records import CommitOutcome, CommitRecord, EffectRecord, calls_against
from benchwright.regress.watch.state import CommitFile, Journal, StatusFile, alone


def record(commit: str, *effects: EffectRecord, control: str = "k", place: str = "") -> CommitRecord:
    return CommitRecord(
        commit=commit,
        commit_time="2026-11-16T00:00:00Z",
        subject="s",
        outcome=CommitOutcome.SAME,
        ended="2026-11-16T00:00:00Z",
        control=control,
        effects=effects,
        place=place,
    )


def effect(*, called: bool = False, since: str | None = None, verdict: Verdict = Verdict.REGRESSED) -> EffectRecord:
    return EffectRecord(
        benchmark="b", metric="m", ratio=1.1, verdict=verdict, direction=Direction.LOWER, called=called, since=since
    )


def test_a_commit_file_is_written_whole_and_read_back(tmp_path: Path) -> None:
    file = CommitFile(tmp_path / "last")
    assert file.read() is None
    file.check()
    file.write("a" * 40)
    assert (tmp_path / "last").read_text() == "a" * 40 + "\n"
    assert file.read() == "a" * 40
    assert os.listdir(tmp_path) == ["last"]


def test_an_empty_commit_file_names_nothing(tmp_path: Path) -> None:
    (tmp_path / "last").write_text("\n")
    assert CommitFile(tmp_path / "last").read() is None


def test_a_commit_file_that_cannot_be_written_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="folder does not exist"):
        CommitFile(tmp_path / "no" / "last").check()
    with pytest.raises(InvalidInput, match="is a folder"):
        CommitFile(tmp_path).check()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_commit_file_in_a_folder_of_others_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(BenchwrightError):
        CommitFile(tmp_path / "last").check()


@pytest.mark.parametrize(
    ("text", "stops"), [("0", True), ("0\n", True), (" 0 ", True), ("1", False), ("", False), ("00", False)]
)
def test_a_zero_in_the_status_file_stops(tmp_path: Path, text: str, stops: bool) -> None:
    (tmp_path / "status").write_text(text)
    assert StatusFile(tmp_path / "status").asks_to_stop() is stops


def test_a_status_file_that_is_not_there_or_no_file_does_not_stop(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("nothing", "pipe", "."):
        assert not StatusFile(tmp_path / name).asks_to_stop()


def test_a_journal_keeps_records_and_passes_over_damage(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "made" / "journal.jsonl")
    assert journal.read() == []
    journal.add(record("a", effect(called=True)))
    with journal.path.open("ab") as file:
        file.write(b'{"commit": "half')  # the power went
    journal.add(record("b"))
    assert [each.commit for each in journal.read()] == ["a", "b"]
    assert journal.read()[0] == record("a", effect(called=True))


def test_a_second_watch_is_refused_and_a_killed_one_leaves_nothing_behind(tmp_path: Path) -> None:
    with alone(tmp_path), pytest.raises(CannotMeasure, match="another benchwright"), alone(tmp_path):
        pass
    code = (
        "import os, pathlib, sys\n"
        "from benchwright.regress.watch.state import alone\n"
        "with alone(pathlib.Path(sys.argv[1])):\n    os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)]).returncode == -9
    with alone(tmp_path):
        pass


CONTROL = Commit(hash="k", time=None)  # type: ignore[arg-type]


def test_earlier_calls_hold_for_the_same_control_and_place_only() -> None:
    called = record("a", effect(called=True))
    assert [call.commit for call in calls_against([called], CONTROL).values()] == ["a"]
    assert calls_against([called], CONTROL, "phone") == {}
    assert calls_against([record("a", effect(called=True), control="other")], CONTROL) == {}


def test_the_first_commit_that_was_called_is_remembered_until_it_is_repaired() -> None:
    called, again = record("a", effect(called=True)), record("b", effect(called=True, since="a"))
    assert [call.commit for call in calls_against([called, again], CONTROL).values()] == ["a"]
    repaired = record("c", effect(verdict=Verdict.SAME))
    assert calls_against([called, again, repaired], CONTROL) == {}
    unclear = record("c", effect(verdict=Verdict.INCONCLUSIVE))
    assert [call.commit for call in calls_against([called, again, unclear], CONTROL).values()] == ["a"]
