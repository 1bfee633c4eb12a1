"""Files that were stored are read without trust."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from benchwright.core.stored_file import Unreadable, decode_stored_json, open_stored, read_stored_json


class Body(msgspec.Struct):
    text: str
    count: int = 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"text": "\xff"}', "not UTF-8"),
        (b'{"text": "\xed\xa0\x80"}', "not UTF-8"),
        (b'{"text": "\\ud800"}', "truncated"),
        (b"", "truncated"),
        (b'{"text": 5}', "Expected `str`"),
        (b'{"text": "x", "count": 1e999}', "out of range"),
        (b'{"text": "x", "count": NaN}', "malformed"),
        (b'{"text": "x", "count": 1' + b"0" * 5000 + b"}", "out of range"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"[1, 2]", "Expected `object`"),
    ],
)
def test_whatever_is_wrong_with_a_document_is_said_in_words(content: bytes, said: str) -> None:
    with pytest.raises(Unreadable, match=said) as caught:
        decode_stored_json(content, Body)
    assert len(str(caught.value)) < 400


def test_a_message_about_a_damaged_file_is_short_however_long_the_damage_is() -> None:
    with pytest.raises(Unreadable) as caught:
        decode_stored_json(b'"' + b"y" * 100_000 + b'"', type=bool)
    assert len(str(caught.value)) < 400


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    "make",
    [
        lambda path: None,
        lambda path: path.mkdir(),
        make_pipe,
        lambda path: path.symlink_to(path.name),
        lambda path: path.symlink_to("/dev/zero"),
    ],
    ids=["nothing", "a folder", "a pipe", "a link to itself", "an endless device"],
)
def test_what_is_no_file_is_an_error_at_once(tmp_path: Path, make: object) -> None:
    make(tmp_path / "x")  # type: ignore[operator]
    with pytest.raises(OSError):  # noqa: PT011 - whichever it is
        open_stored(tmp_path / "x")


def test_what_is_whole_is_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b'{"text": "n\xc3\xa9", "count": 3, "more": [1]}')
    assert read_stored_json(tmp_path / "x", Body) == Body("né", 3)
    assert read_stored_json(tmp_path / "x")["more"] == [1]
