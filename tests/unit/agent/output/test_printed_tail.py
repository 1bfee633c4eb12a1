"""Lines of a log that a kind reads itself, copied into the job's stream."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from builders import events
from builders import job as job_in
from hypothesis import given
from hypothesis import strategies as st

from benchwright.agent.output import job_log
from benchwright.agent.output.job_log import PrintedTail
from benchwright.agent.output.log_tail import LogReader
from benchwright.agent.stream import StreamWriter
from benchwright.executors.base import Listener
from benchwright.executors.local import LocalExecutor


def copied(folder: Path, portions: list[bytes], wanted: str = "Observer") -> list[tuple[int, str, bool]]:
    """Number, text and whether it was cut of every line that is copied from a log that grows by these portions."""
    log, stream = folder / "job.log", folder / "job.data"
    log.write_bytes(b"")
    stream.unlink(missing_ok=True)
    writer = StreamWriter(str(stream))
    tail = PrintedTail(LogReader(str(log), 0), wanted, writer)
    for portion in portions:
        with log.open("ab") as out:
            out.write(portion)
        while tail.advance(1):
            pass
    tail.finish(2)
    writer.close()
    said = [json.loads(line) for line in stream.read_text().splitlines()]
    return [(number, text, event["cut"]) for event in said for number, text in event["lines"]]


def test_every_record_is_copied_in_order_with_its_line(tmp_path: Path) -> None:
    log = b"hello\nObserver 1\nnoise\nxx Observer 2\r\nObserver 3\n"
    assert copied(tmp_path, [log]) == [(2, "Observer 1", False), (4, "xx Observer 2", False), (5, "Observer 3", False)]


def test_the_last_line_of_a_killed_program_is_marked_as_cut(tmp_path: Path) -> None:
    assert copied(tmp_path, [b"Observer 1\nObserver {"]) == [(1, "Observer 1", False), (2, "Observer {", True)]


def test_all_lines_are_copied_if_no_text_is_wanted(tmp_path: Path) -> None:
    assert [text for _, text, _ in copied(tmp_path, [b"{\n\n 1\n}\n"], wanted="")] == ["{", " 1", "}"]


def test_a_line_without_an_end_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_log, "LONGEST_LINE", 16)
    found = copied(tmp_path, [b"Observer aaaaaaaa", b"b" * 100, b"c\nObserver 2\n"])
    assert found == [(1, "Observer aaaaaaa", True), (2, "Observer 2", False)]


@given(st.lists(st.sampled_from([b"Observer 1", b"x", b"", b"\xff Observer", b"Obser"]), max_size=30), st.data())
def test_how_the_log_grows_does_not_change_what_is_copied(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], data: st.DataObject
) -> None:
    log = b"\n".join(lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(log)), max_size=6)))
    portions = [log[a:b] for a, b in zip([0, *cuts], [*cuts, len(log)], strict=True)]
    folder = tmp_path_factory.mktemp("log")
    assert copied(folder, portions) == copied(folder, [log])
    wanted = [(n, t.decode(errors="replace")) for n, t in enumerate(lines, 1) if b"Observer" in t]
    assert [(n, t) for n, t, _ in copied(folder, [log])] == wanted


def test_a_job_asks_for_its_lines(tmp_path: Path) -> None:
    code = "import sys; print('Observer 1'); print('Observer 2', file=sys.stderr); print('x')"
    job = job_in(sys.executable, "-uc", code, folder=tmp_path, printed="Observer")
    with LocalExecutor() as local:
        local.run([job], Listener())
    assert [line for event in events(job, "printed") for line in event["lines"]] == [
        [1, "Observer 1"],
        [2, "Observer 2"],
    ]
