"""Reading back what measured programs printed."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from benchwright.core.errors import InvalidInput
from benchwright.runs.logs import Log, choose_logs, logs_in, read_log, tail_of, tail_texts


def write(folder: Path, name: str, text: bytes) -> None:
    (folder / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)


def whole(folder: Path, bench: str | None = None) -> dict[str, bytes]:
    return {log.job: b"".join(read_log(log)) for log in choose_logs(folder, bench)}


def test_a_log_whose_compressing_was_interrupted_is_read_from_the_raw_file(tmp_path: Path) -> None:
    write(tmp_path, "b.D0.log", b"the whole log\n")
    write(tmp_path, "b.D0.log.gz", b"the")
    assert whole(tmp_path) == {"b.D0": b"the whole log\n"}


@pytest.mark.parametrize("name", ["b.D0.log", "b.D0.log.gz"])
def test_a_log_that_is_a_link_is_not_followed(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    write(tmp_path, "private.gz" if name.endswith(".gz") else "private", b"somebody's own\n")
    (folder / name).symlink_to(next(path for path in tmp_path.iterdir() if path.is_file()))
    assert logs_in(folder) == []
    assert tail_texts(folder, ["b.D0"], 5) == {}
    with pytest.raises(OSError, match="symbolic link"):
        list(read_log(Log("b.D0", str(folder / name))))


def test_a_compressed_log_that_was_cut_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    text = b"".join(b"line %d of many\n" % n for n in range(50_000))
    (tmp_path / "b.D0.log.gz").write_bytes(gzip.compress(text)[:-2000])
    read = whole(tmp_path)["b.D0"]
    assert text.startswith(read)
    assert len(read) > 65536


def test_the_logs_of_a_benchmark_are_not_those_of_one_whose_name_begins_alike(tmp_path: Path) -> None:
    for job in ("train.R0.D0", "train.R1.D0", "train2.D0"):
        write(tmp_path, f"{job}.log.gz", job.encode())
    assert set(whole(tmp_path, "train")) == {"train.R0.D0", "train.R1.D0"}
    assert whole(tmp_path, "train.R1.D0") == {"train.R1.D0": b"train.R1.D0"}
    with pytest.raises(InvalidInput, match="no log of 'tra'"):
        choose_logs(tmp_path, "tra")


def test_what_a_script_printed_while_models_were_looked_for_is_its_log_if_it_has_no_other(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no logs"):
        choose_logs(tmp_path, None)
    (tmp_path / "discovery").mkdir()
    write(tmp_path / "discovery", "big.py.D0.log.gz", b"too large\n")
    assert whole(tmp_path) == whole(tmp_path, "big.py") == {"big.py.D0": b"too large\n"}
    write(tmp_path, "small.D0.log", b"measured\n")
    assert whole(tmp_path) == {"small.D0": b"measured\n"}
    assert whole(tmp_path, "big.py") == {"big.py.D0": b"too large\n"}


def test_the_end_of_a_long_log_is_its_end(tmp_path: Path) -> None:
    write(tmp_path, "b.D0.log", b"".join(b"line %d\n" % n for n in range(200_000)))
    (log,) = logs_in(tmp_path)
    assert tail_of(log, 2, most_bytes=100_000) == [b"line 199998\n", b"line 199999\n"]
    assert tail_of(log, 0) == []


def test_last_lines_are_shown_as_a_terminal_would_show_them(tmp_path: Path) -> None:
    write(tmp_path, "b.D0.log.gz", b"first\n10 %\r20 %\r100 %\nbell\a and \xff\n")
    found = tail_texts(tmp_path, ["b.D0", "absent.D0"], 2)
    assert found == {"b.D0": ["100 %", "bell  and \N{REPLACEMENT CHARACTER}"]}
