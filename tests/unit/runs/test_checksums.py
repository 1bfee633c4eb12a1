"""A stream that is no longer what it was when its launch ended is told, wherever its numbers are."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path

import pytest

import benchwright
from benchwright.core.run import Run
from benchwright.kinds.registry import kind_of
from benchwright.runs.checksums import CHECKSUMS, Checksums
from benchwright.runs.read_run import read_run
from benchwright.runs.run_folder import RunFolder

COMMAND = [sys.executable, "-c", "print('speed=5')"]
TOLD = "its stream was changed after the launch had ended"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return benchwright.run(COMMAND, metrics=["speed"], repeat=2, base=tmp_path_factory.mktemp("base"))


@pytest.fixture
def folder(made: Run, tmp_path: Path) -> RunFolder:
    return RunFolder(Path(shutil.copytree(made.folder, tmp_path / "copy")))


def streams(folder: RunFolder) -> list[Path]:
    return sorted(folder.path.glob("*.data"))


def triple(stream: Path) -> None:
    stream.write_text(stream.read_text().replace('"values":[5.0]', '"values":[15.0]'))


def told(folder: RunFolder) -> list[bool]:
    """Of each launch, whether it has the note."""
    run = read_run(folder, kind_of)
    return [any(TOLD in note.text for note in x.notes) for result in run.results for x in result.launches]


def unfinish(folder: RunFolder) -> None:
    body = json.loads((folder.path / "run.json").read_text())
    (folder.path / "run.json").write_text(json.dumps(body | {"ended": None, "status": "interrupted"}))


def test_every_stream_has_the_checksum_that_sha256sum_makes(folder: RunFolder) -> None:
    expected = [f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.name}" for p in streams(folder)]
    assert (folder.path / CHECKSUMS).read_text().splitlines() == expected
    assert len(expected) == 2
    assert told(folder) == [False, False]


def test_a_changed_value_has_a_note_that_decides_nothing(folder: RunFolder, made: Run) -> None:
    triple(streams(folder)[1])
    run = read_run(folder, kind_of)
    assert [x.measurement("speed").samples for x in run.results[0].launches] == [(5.0,), (15.0,)]  # type: ignore[union-attr]
    assert told(folder) == [False, True]
    assert run.status is made.status


def test_a_stream_replaced_by_another_launchs_has_a_note(folder: RunFolder) -> None:
    first, second = streams(folder)
    second.write_bytes(first.read_bytes())
    assert told(folder) == [False, True]


def test_a_run_without_checksums_is_read_as_it_always_was(folder: RunFolder) -> None:
    (folder.path / CHECKSUMS).unlink()
    triple(streams(folder)[1])
    assert told(folder) == [False, False]


@pytest.mark.parametrize("content", [b"", b"\xff\x00", b"abc  x.data\n", b"0" * 64 + b"  elsewhere.data\n"])
def test_damaged_checksums_are_none(folder: RunFolder, content: bytes) -> None:
    (folder.path / CHECKSUMS).write_bytes(content)
    assert told(folder) == [False, False]


def test_a_launch_that_was_killed_has_no_checksum(folder: RunFolder) -> None:
    (folder.path / CHECKSUMS).unlink()
    first, second = streams(folder)
    second.write_text("".join(second.read_text().splitlines(keepends=True)[:2]))
    checksums = Checksums(folder.path)
    for stream in (first, second):
        checksums.add(str(stream))
    assert (checksums.of(str(first)) is None, checksums.of(str(second)) is None) == (False, True)


def test_a_stream_that_is_gone_from_an_interrupted_run_is_missed(folder: RunFolder) -> None:
    unfinish(folder)
    streams(folder)[1].unlink()
    launches = read_run(folder, kind_of).results[0].launches
    assert "its stream is missing" in (launches[1].detail or "")


def test_a_resumed_run_tells_what_was_changed_meanwhile_and_repeats_what_is_gone(made: Run, tmp_path: Path) -> None:
    base = tmp_path / "base"
    folder = RunFolder(Path(shutil.copytree(made.folder, base / "runs" / made.id)))
    unfinish(folder)
    triple(streams(folder)[0])
    streams(folder)[1].unlink()
    run = benchwright.run(COMMAND, metrics=["speed"], repeat=2, resume=folder.id, base=base)
    assert [TOLD in str(x.notes) for x in run.results[0].launches] == [True, False]
    assert told(folder) == [True, False]
    assert (
        Checksums(folder.path).of(streams(folder)[1].name)
        == hashlib.sha256(streams(folder)[1].read_bytes()).hexdigest()
    )


def test_nothing_is_written_through_a_link(folder: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (folder.path / CHECKSUMS).unlink()
    (folder.path / CHECKSUMS).symlink_to(tmp_path / "mine")
    Checksums(folder.path).add(str(streams(folder)[0]))
    assert (tmp_path / "mine").read_text() == "mine"
