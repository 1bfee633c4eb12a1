"""Run folders that people and disks have been at: read as far as they are true, refused in words otherwise."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from command_line import CommandLine
from made_once import MadeOnce

PY = sys.executable


@pytest.fixture
def folder(bw: CommandLine, made_once: MadeOnce) -> Path:
    """Of a run that was made once, copied with its store."""

    def make(place: Path) -> None:
        made = CommandLine(place / "base", place)
        made("run", "--repeat", "2", "--metric", "speed", "--tag", "mine", "--", PY, "-c", "print('speed=5')")
        made.base.rename(place / "moved")  # else what is copied would be taken for a copy of it

    shutil.copytree(made_once("run-to-damage", make) / "moved", bw.base)
    return bw.last_run()


def test_foreign_files_change_nothing(bw: CommandLine, folder: Path) -> None:
    before = json.loads(bw("show", "--json").stdout)
    (folder / "notes.txt").write_text("mine")
    (folder / "python.R9.D0.data.orig").write_bytes(b"\xff\x00")
    (folder / "sub").mkdir()
    assert json.loads(bw("show", "--json").stdout) == before
    assert "already there" in bw("ingest", str(folder)).stdout


def test_a_stream_cut_off_in_the_middle_of_a_line_is_no_success(bw: CommandLine, folder: Path) -> None:
    (stream,) = folder.glob("*.R1.D0.data")
    stream.write_bytes(stream.read_bytes()[:-40])
    assert "ingested" in bw("ingest", str(folder)).stdout
    body = json.loads(bw("report", "--format", "json").stdout)
    (result,) = body["results"]
    assert [x["status"] for x in result["launches"]] == ["ok", "failed"]
    assert result["launches"][1]["reason"] == "agent_lost"


def test_a_number_edited_by_hand_is_seen_again_by_ingest(bw: CommandLine, folder: Path) -> None:
    (stream,) = folder.glob("*.R0.D0.data")
    stream.write_text(
        stream.read_text().replace('"values":[5.0]', '"values":[7.0]').replace('"values": [5.0]', '"values": [7.0]')
    )
    assert "ingested" in bw("ingest", str(folder)).stdout
    body = json.loads(bw("report", "--format", "json").stdout)
    (speed,) = [m for m in body["results"][0]["metrics"] if m["metric"] == "speed"]
    assert speed["values"] == [7.0, 5.0]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": "benchwright-plan", "version": 1}', b"\xff\xfe"])
def test_a_plan_that_is_none_is_refused_in_words(bw: CommandLine, folder: Path, content: bytes) -> None:
    (folder / "plan.json").write_bytes(content)
    done = bw("ingest", str(folder), code=2)
    assert "plan.json" in done.stderr
    assert "Traceback" not in done.stderr


def test_runs_are_found_by_tag(bw: CommandLine, folder: Path) -> None:
    assert folder.name in bw("runs", "--tag", "mine").stdout
    assert "no runs" in bw("runs", "--tag", "other").stdout
    assert folder.name in bw("runs", "--sort", "size").stdout
