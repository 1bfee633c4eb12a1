"""Reading files: what is read is what was written."""

from __future__ import annotations

from itertools import islice

import pytest
from shipped_benchmarks import ROOT, checked_lines, load, prepare, run

disk_read = load("disk_read")
blocks = load("disk_read", "blocks")
SMALL = 4096


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    assert prepare("disk_read", data=folder) == folder / "disk_read" / "tiny"
    return folder


@pytest.mark.parametrize("pattern", ["sequential", "random"])
@pytest.mark.parametrize("cache", ["direct", "drop", "keep"])
def test_it_computes_what_it_claims(data, pattern, cache):
    assert checked_lines("disk_read", "--pattern", pattern, "--cache", cache, "--readers", "3", data=data)


def test_it_runs(data):
    done = run("disk_read", "--steps", "3", "--readers", "2", data=data)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_another_content_is_noticed(data):
    file = data / "disk_read" / "tiny" / "1.bin"
    written = file.read_bytes()
    try:
        file.write_bytes(written[:4096] + b"?" + written[4097:])
        done = run("disk_read", "--check", data=data)
    finally:
        file.write_bytes(written)
    assert done.returncode == 1
    assert "WRONG bytes that are what was written" in done.stdout


def test_it_needs_no_torch(data, tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('there is no torch')")
    assert run("disk_read", "--check", data=data, PYTHONPATH=f"{tmp_path}:{ROOT}/src").returncode == 0


def test_sequences_go_through_every_file_and_begin_again():
    found = list(islice(blocks.sequence([3 * SMALL, SMALL], SMALL), 5))
    assert found == [(0, 0), (0, SMALL), (0, 2 * SMALL), (1, 0), (0, 0)]


def test_scattered_blocks_are_everywhere_and_the_same_with_the_same_seed():
    first, again, other = ([*islice(blocks.scattered([8 * SMALL] * 2, SMALL, seed), 200)] for seed in (0, 0, 1))
    assert first == again != other
    assert set(first) == {(file, i * SMALL) for file in range(2) for i in range(8)}


@pytest.mark.parametrize(("count", "readers"), [(8, 3), (4, 1), (2, 4), (7, 7)])
def test_a_step_is_divided_among_the_readers(count, readers):
    step = next(disk_read.steps(blocks.sequence([64 * SMALL], SMALL), count, readers))
    assert [block.offset for part in step for block in part] == [i * SMALL for i in range(count)]
    assert len(step) <= readers


def test_a_file_that_ended_early_is_an_error(tmp_path):
    (tmp_path / "0.bin").write_bytes(b"x" * SMALL)
    reader = blocks.Reader(tmp_path, SMALL, "keep", at_random=False)
    with pytest.raises(OSError, match=r"0 bytes instead of 4096 at 4096"):
        reader.read([blocks.Block(0, SMALL)], reader.buffer())
    reader.close()


@pytest.mark.parametrize("kib", ["3", "99999999"])
def test_blocks_that_cannot_be_read_are_refused(capsys, kib):
    with pytest.raises(SystemExit):
        disk_read.arguments(["--block-kib", kib])
    assert "must be a multiple of 4, and no larger than a file" in capsys.readouterr().err
