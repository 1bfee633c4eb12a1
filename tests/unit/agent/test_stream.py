from __future__ import annotations

import json
import os
import resource
import signal
import time
from pathlib import Path

from benchwright.agent.stream import StreamWriter


def read(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def test_events_are_lines_in_their_order(tmp_path):
    stream = StreamWriter(str(tmp_path / "new" / "a.data"))
    stream.append("one", t=1)
    stream.append("two", values={"loss": float("nan")}, name="ä\n")
    stream.close()
    first, second = read(tmp_path / "new" / "a.data")
    assert first == {"event": "one", "n": 0, "t": 1}
    assert second["name"] == "ä\n"
    assert stream.trouble is None


def test_two_writers_append_to_one_file(tmp_path):
    one, two = (StreamWriter(str(tmp_path / "a.data")) for _ in range(2))
    for number in range(100):
        one.append("one", number=number, padding="x" * 3000)
        two.append("two", number=number)
    assert [event["number"] for event in read(tmp_path / "a.data")] == [n for n in range(100) for _ in "ab"]


def test_a_full_disk_is_waited_out_and_then_said(tmp_path):
    stream = StreamWriter("/dev/full")
    began = time.monotonic()
    stream.append("one")
    assert not stream.flush(patience_s=0.3)
    assert time.monotonic() - began >= 0.3
    assert "the disk is full" in (stream.trouble or "")


def test_what_waited_is_written_once_there_is_room(tmp_path):
    """A limit on the size of files stands in for the disk: the line that crosses it is cut, as on a full disk."""
    path = tmp_path / "a.data"
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (56, hard))
        stream = StreamWriter(str(path))
        stream.append("first", padding="x" * 10)
        stream.append("second", padding="y" * 40)
        was_torn = path.stat().st_size == 56
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        stream.append("third")
        os._exit(0 if was_torn else 1)
    assert os.waitpid(child, 0)[1] == 0
    lines = path.read_text().splitlines()
    assert json.loads(lines[0])["event"] == "first"
    assert lines[1] == '{"event":'  # the torn one, which readers skip
    assert [json.loads(line)["event"] for line in lines[2:]] == ["second", "third"]


def test_a_folder_that_cannot_be_made_is_trouble_not_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    stream = StreamWriter(str(tmp_path / "file" / "a.data"))
    stream.append("one")
    assert not stream.flush()
    assert "could not be written" in (stream.trouble or "")
