"""Locks between processes, between threads, and after a process that was killed."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchwright.core.file_lock import try_lock

HOLDER = """
import os, sys, time
from benchwright.core.file_lock import try_lock
handle = os.open(sys.argv[1], os.O_RDONLY)
print(try_lock(handle, shared=sys.argv[2] == "shared"), flush=True)
time.sleep(600)
"""


@pytest.fixture(params=["file", "folder"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "folder":
        return tmp_path
    (tmp_path / "lock").touch()
    return tmp_path / "lock"


@pytest.fixture
def handle(place: Path) -> Iterator[int]:
    opened = os.open(place, os.O_RDONLY)
    yield opened
    os.close(opened)


def holding(place: Path, how: str = "alone") -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(place), how], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    return process


def test_one_process_has_it_until_it_is_killed(place: Path, handle: int) -> None:
    with holding(place) as other:
        assert not try_lock(handle)
        assert not try_lock(handle, shared=True)
        other.kill()
    assert try_lock(handle)


def test_several_may_share_it_and_then_none_has_it_alone(place: Path, handle: int) -> None:
    with holding(place, "shared") as other:
        assert try_lock(handle, shared=True)
        assert not try_lock(handle)
        other.kill()
    assert try_lock(handle)


def test_it_holds_between_threads_too(place: Path, handle: int) -> None:
    """It belongs to what was opened, not to the process."""
    assert try_lock(handle)
    again = os.open(place, os.O_RDONLY)
    assert not try_lock(again)
    os.close(again)


def test_without_locks_everybody_gets_it(handle: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", missing)  # no file system here lacks them
    assert try_lock(handle)
