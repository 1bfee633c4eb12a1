"""Streams as they are found after a crash."""

from __future__ import annotations

import json
import math
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from benchwright.recorder import is_complete, read_events
from benchwright.recorder.reading import NOT_JSON, decode_line


def write(path: Path, *lines: bytes) -> Path:
    path.write_bytes(b"\n".join(lines))
    return path


def test_a_cut_off_last_line_is_one_unreadable_event(tmp_path: Path) -> None:
    stream = write(tmp_path / "s", b'{"event":"start"}', b'{"event":"ste')
    assert [e["event"] for e in read_events(stream)] == ["start", "unreadable"]


def test_a_bare_nan_is_read() -> None:
    assert math.isnan(decode_line(b'{"event":"give","values":{"loss":NaN}}')["values"]["loss"])


@given(st.binary(max_size=200))
def test_any_bytes_are_an_event_or_unreadable(line: bytes) -> None:
    event = decode_line(line)
    assert event is NOT_JSON or isinstance(event["event"], str)


def test_a_job_is_complete_when_its_end_is_there_even_if_late_lines_follow(tmp_path: Path) -> None:
    end = json.dumps({"event": "end", "exit_code": 0}).encode()
    assert is_complete(write(tmp_path / "a", b'{"event":"start"}', end))
    assert is_complete(write(tmp_path / "b", end, b'{"event":"steps"}', b"rubbish"))


def test_a_job_that_was_stopped_or_has_no_end_is_repeated(tmp_path: Path) -> None:
    assert not is_complete(tmp_path / "absent")
    assert not is_complete(write(tmp_path / "a", b'{"event":"start"}'))
    assert not is_complete(write(tmp_path / "b", b'{"event":"end","stopped":true}'))
    assert not is_complete(write(tmp_path / "lost", b'{"event":"end","signal":15,"stopped":false,"agent_lost":true}'))
