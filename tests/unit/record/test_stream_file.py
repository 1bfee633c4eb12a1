"""Streams as they are found after a crash."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.record import is_complete, read_events
from benchwright.record.stream_file import NOT_JSON, decode_line


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


def test_a_byte_that_is_no_text_costs_its_line_and_no_other(tmp_path: Path) -> None:
    stream = write(tmp_path / "s", b'{"event":"start"}', b'{"event":"message","text":"\xff"}', b'{"event":"end"}')
    assert [e["event"] for e in read_events(stream)] == ["start", "unreadable", "end"]


def test_half_a_character_is_replaced_so_that_what_is_read_can_be_written() -> None:
    event = decode_line(b'{"event":"give","values":{"na\\ud800me":1.5,"fine":2}}')
    assert event["values"] == {"na\ufffdme": 1.5, "fine": 2}
    json.dumps(event, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "line",
    [
        '{"event":"steps","process":1,"loop":1,"t":5,"step_ns":[1,2],"wait_ns":[0]}',
        '{"event":"steps","process":1,"loop":1,"t":5,"step_ns":["1"],"wait_ns":[0]}',
        '{"event":"steps","process":1,"loop":1,"t":5,"step_ns":[1],"wait_ns":[0],"items":1' + "0" * 400 + "}",
        '{"event":"steps","process":1,"loop":1,"t":1e999,"step_ns":[1],"wait_ns":[0]}',
        '{"event":"steps","process":1,"loop":1,"t":5,"step_ns":[1],"wait_ns":[0],"phase":"x"}',
        '{"event":"give","values":{"x":1' + "0" * 400 + "}}",
        '{"event":"give","values":[1]}',
        '{"event":"metric","name":"m","values":["5"]}',
        '{"event":"sample","t":1,"sampler":"process","values":{"rss_bytes":Infinity}}',
        '{"event":"end","exit_code":0,"duration_s":"long"}',
        '{"event":"end","exit_code":0,"duration_s":NaN}',
        '{"event":"loop","process":1,"loop":1,"name":null}',
        '{"event":["end"]}',
        '{"event":"give","values":' + '{"a":' * 5000 + "1" + "}" * 5000 + "}",
    ],
)
def test_an_event_whose_keys_hold_what_they_cannot_is_unreadable(line: str) -> None:
    assert decode_line(line.encode()) is NOT_JSON


def test_keys_and_events_that_are_not_known_are_nobodys_concern() -> None:
    assert decode_line(b'{"event":"end","exit_code":0,"new":{"a":[1]}}')["exit_code"] == 0
    assert decode_line(b'{"event":"something","new":1}')["new"] == 1


def test_a_diverged_loss_is_data_in_every_place_a_program_gives_it() -> None:
    for line in (
        b'{"event":"give","values":{"loss":NaN}}',
        b'{"event":"metric","name":"loss","values":[1.0,Infinity]}',
        b'{"event":"steps","process":1,"loop":1,"t":5,"step_ns":[1],"wait_ns":[0],"given":{"loss":[[0],[-Infinity]]}}',
    ):
        assert decode_line(line) is not NOT_JSON


def test_a_stream_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert not is_complete(tmp_path / "pipe")
    with pytest.raises(OSError, match="regular file"):
        list(read_events(tmp_path / "pipe"))
