"""A full disk: said in words, nothing finished is lost, and never a success without its data."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import builders
import pytest
from command_line import CommandLine

PY = sys.executable
FULL = "the disk is full|No space left on device"  # the folder's own name has a disk in it, too


@pytest.mark.parametrize("left_bytes", [0, 40_000])
def test_a_disk_that_is_full_from_the_start_is_said_and_is_no_success(
    bw: CommandLine, small_disk: Path, left_bytes: int
) -> None:
    fill(small_disk, left_bytes)
    done = bw(
        "run",
        "--base",
        str(small_disk),
        "--metric",
        "speed",
        "--",
        PY,
        "-c",
        "print('speed=1\\n' * 100_000)",
        code=3,
    )
    assert "Traceback (most recent call last)" not in done.stderr
    assert re.search(FULL, done.stderr)


def test_a_disk_that_fills_up_during_a_run_keeps_what_was_finished(bw: CommandLine, small_disk: Path) -> None:
    code = "import os\nn = len(os.listdir('.'))\nopen(f'{n}', 'w').close()\nprint('speed=1')\nif n == 1: print('y' * 6_000_000)"
    done = bw("run", "--base", str(small_disk), "--repeat", "3", "--metric", "speed", "--", PY, "-c", code, code=1)
    folder = next((small_disk / "runs").iterdir())
    from benchwright.record import is_complete

    assert is_complete(folder / "python.R0.D0.data")
    assert "Traceback (most recent call last)" not in done.stderr
    assert re.search(FULL, done.stderr)
    assert "2 of 3 launches failed" in done.stdout


def test_a_base_that_cannot_be_written_is_said_with_a_remedy(bw: CommandLine, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    done = bw("run", "--base", str(blocked / "below"), "--", "true", code=3)
    assert "--base" in done.stderr


def fill(place: Path, left_bytes: int) -> None:
    free = os.statvfs(place)
    with open(place / "filler", "wb") as handle:
        handle.write(b"x" * max(0, free.f_bavail * free.f_frsize - left_bytes))


@pytest.mark.compat
def test_data_of_voir_that_cannot_be_written_are_no_success(small_disk: Path, tmp_path: Path) -> None:
    from benchwright.core.status import Status
    from benchwright.executors.base import Listener
    from benchwright.executors.local import LocalExecutor
    from benchwright.kinds.registry import kind_of
    from benchwright.record import record_stream

    say = 'import os\nfor n in range(100_000): os.write(3, b\'{"task": "train", "rate": 5.0, "pad": "%d"}\\n\' % n)'
    job = builders.job(PY, "-c", say, folder=tmp_path, id="b", data_file=str(small_disk / "b.voir"), dialect="voir")
    fill(small_disk, 100_000)
    with LocalExecutor() as executor:
        [outcome] = executor.run([job], Listener())
    launch = record_stream(job.stream, job, builders.benchmark(), kind_of)
    assert outcome.exit_code == 1
    assert launch.status is Status.FAILED
    rate = launch.measurement("rate")
    assert rate is not None
    assert len(rate.samples) > 100  # what was written before is there


WRITES = "import sys\nopen(sys.argv[1], 'wb').write(b'x' * 1_000_000)\nprint('speed=1')"


def test_a_program_that_died_of_a_full_disk_is_repeated_by_a_resume(bw: CommandLine, small_disk: Path) -> None:
    """The disk is the program's own, not that of the run."""
    fill(small_disk, 10_000)
    args = ("--repeat", "2", "--metric", "speed", "--", PY, "-c", WRITES, str(small_disk / "out"))
    body = bw.json("run", *args, code=1)
    assert body["results"][0]["reason"] == "disk_full"
    assert "resume the run" in body["results"][0]["detail"]
    (small_disk / "filler").unlink()
    again = bw.json("run", "--resume", *args)
    assert again["id"] == body["id"]
    assert again["status"] == "ok"
    assert [x["status"] for x in again["results"][0]["launches"]] == ["ok", "ok"]


def test_a_failure_of_another_kind_stays_final(bw: CommandLine) -> None:
    bw("run", "--", PY, "-c", "raise ValueError('No room for more')", code=1)
    assert (
        "no unfinished run"
        in bw("run", "--resume", "--", PY, "-c", "raise ValueError('No room for more')", code=2).stderr
    )


def test_output_that_a_full_disk_may_have_cut_off_is_no_success_and_not_final(
    bw: CommandLine, small_disk: Path
) -> None:
    """The program does not look at whether its writes succeed, and ends with 0."""
    ignores = (
        "import os\nos.write(1, b'speed=1\\n')\n"
        f"with open({str(small_disk / 'rest')!r}, 'wb', buffering=0) as rest:\n"
        "    while True:\n        try: rest.write(b'x' * 4096)\n        except OSError: break\n"
    )
    body = bw.json("run", "--base", str(small_disk), "--metric", "speed", "--", PY, "-c", ignores, code=None)
    assert (body["status"], body["results"][0]["reason"]) == ("failed", "disk_full")
    (small_disk / "rest").unlink()
    done = bw("run", "--base", str(small_disk), "--resume", "--metric", "speed", "--", PY, "-c", ignores, code=None)
    assert "no unfinished run" not in done.stderr


@pytest.mark.parametrize(
    ("line", "failed", "expected"),
    [
        (b"OSError: [Errno 28] No space left on device: 'x'", True, True),
        (b"cp: error writing 'x': Disk quota exceeded", True, True),
        (b"Error: ENOSPC: no space left on device, write", True, True),
        (b"No space left on device", False, False),
        (b"RuntimeError: no space left in the tensor", True, False),
    ],
)
def test_lack_of_disk_space_is_known_by_its_words_in_a_failure(
    tmp_path: Path, line: bytes, failed: bool, expected: bool
) -> None:
    from benchwright.agent.supervise.launch_end import ran_out_of_disk

    assert ran_out_of_disk(failed=failed, log_end=line, log=str(tmp_path / "log")) is expected
