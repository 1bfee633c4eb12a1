"""Reporters when the disk is full: the run is complete and shown, what is lost is said, and nothing is half written."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from command_line import CommandLine

OBSERVED = """echo 'PyTorchObserver {"type": "NET", "metric": "latency", "unit": "us", "value": "12.5"}'"""


def fill(place: Path) -> None:
    with open(place / "filler", "wb") as file:
        free = os.statvfs(place)
        file.write(b"x" * (free.f_bavail * free.f_bsize))


@pytest.mark.compat
def test_a_full_disk_costs_the_report_and_not_the_run(bw: CommandLine, small_disk: Path) -> None:
    fill(small_disk)
    done = bw("run", "--local-reporter", str(small_disk / "reports"), "--", "sh", "-c", OBSERVED, code=1)
    assert re.search(r"the run is complete, but not reported in .*: the disk is full", done.stderr)
    assert "saved: " in done.stdout
    assert "Traceback" not in done.stderr
    assert list(small_disk.rglob("*.txt")) == []
    (small_disk / "filler").unlink()
    again = re.search(r"benchwright (export \S+ --format fai-pep -o) DIR", done.stderr)
    assert again is not None
    bw(*again[1].split(), str(small_disk / "reports"))
    assert len(list(small_disk.rglob("meta.txt"))) == 1


@pytest.mark.compat
def test_a_spool_on_a_full_disk_is_said_and_the_run_can_be_sent_later(bw: CommandLine, small_disk: Path) -> None:
    bw.base.mkdir(exist_ok=True)
    (bw.base / "spool").symlink_to(small_disk)
    fill(small_disk)
    remote = ("--remote-reporter", "http://127.0.0.1:1/logs|perf")
    done = bw("run", *remote, "--", "true", code=1)
    assert re.search(r"the run is complete, but could not be sent: .*the disk is full", done.stderr)
    (small_disk / "filler").unlink()
    assert "1 test waits" in bw("export", "last", *remote, code=1).stderr
    assert len(list(small_disk.glob("*.json"))) == 1
