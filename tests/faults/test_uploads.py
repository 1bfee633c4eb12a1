"""Uploads to a server, with kill -9 of the client, the server and PostgreSQL: one copy of each run, equal to its folder.

UPLOADS=2000 python -m pytest tests/faults/test_uploads.py -m long
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import msgspec
import psutil
import pytest
from kept_runs import Kept
from postgresql import running_server

from benchwright.core.aggregates import aggregate
from benchwright.core.columns import as_list
from benchwright.core.run import Run
from benchwright.kinds.registry import kind_of
from benchwright.results.run_digest import digest_of
from benchwright.runs.read_run import read_run
from benchwright.runs.run_folder import RunFolder
from benchwright.server.tokens import Scope, TokenFile
from benchwright.store.base import RunFilter, SummaryFilter
from benchwright.store.sql_store import open_store

PROGRAM = Path(__file__).parents[1] / "programs" / "send_runs.py"
UPLOADS = int(os.environ.get("UPLOADS", "60"))
_PATIENCE_S = 300.0
_MOST_SENT = 6  # runs between two kills
_LONGEST_S = 0.03  # as long as sending one run takes


def run_folders(base: Path, count: int) -> list[RunFolder]:
    """Copies of one run, each with an id of its own."""
    (first,) = [Kept(base)("sent", [0.1 + n / 7 for n in range(40)], repeat=2)]
    plan = (first.path / "plan.json").read_text()
    found = [first]
    for number in range(1, count):
        path = first.path.with_name(f"sent.{number:05}")
        shutil.copytree(first.path, path)
        (path / "plan.json").write_text(plan.replace(first.unique_id, f"{number:032x}"))
        found.append(RunFolder(path))
    assert len({folder.unique_id for folder in found}) == count
    return found


class Served:
    """A server that is started again, on the same port, after it was killed."""

    def __init__(self, folder: Path, store: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.token = TokenFile(folder).create("ci", Scope.WRITE)
        self._argv = [sys.executable, "-m", "benchwright", "serve", "--port", str(self.port), "--base", str(folder)]
        self._argv += ["--store", store]
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert self._process.stdout is not None
        said = ""
        while "export BENCHWRIGHT_STORE" not in said:
            line = self._process.stdout.readline()
            assert line, f"the server ended: {said}"
            said += line

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=_PATIENCE_S)


@contextmanager
def client(base: Path, served: Served, first: int = 0) -> Iterator[subprocess.Popen[str]]:
    """`first`: how many are there already."""
    env = {**os.environ, "BENCHWRIGHT_TOKEN": served.token}
    argv = [sys.executable, str(PROGRAM), str(base), served.url, str(first)]
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def crash_postgresql(postmaster: int) -> None:
    """One of its processes that serve us is killed; then it ends all others and recovers."""
    for process in psutil.Process(postmaster).children():
        try:
            if "benchwright" in " ".join(process.cmdline()) or "store_" in " ".join(process.cmdline()):
                process.send_signal(signal.SIGKILL)
                return
        except psutil.NoSuchProcess:
            continue


def campaign(base: Path, served: Served, draw: random.Random, crash: Callable[[], None] | None) -> dict[str, int]:
    """Kills somebody again and again until all has been sent, as far as clients know; who was killed how often."""
    killed = {"client": 0, "server": 0, "database": 0}
    sent = 0
    while True:
        with client(base, served, sent) as sending:
            assert sending.stdout is not None
            lines = [sending.stdout.readline() for _ in range(draw.randint(1, _MOST_SENT))]
            if "all there\n" in lines:
                return killed
            time.sleep(draw.uniform(0.0, _LONGEST_S))  # any moment of the next one
            victim = draw.choice(["client", "client", "server", *(["database"] * bool(crash))])
            killed[victim] += 1
            if victim == "server":
                served.kill()
            elif victim == "database" and crash is not None:
                crash()
                lines += [sending.stdout.readline() for _ in range(3)]  # it may go on, or hear of it
                sending.kill()
            else:
                sending.kill()
            rest, _ = sending.communicate(timeout=_PATIENCE_S)
            sent += [*lines, *rest.splitlines(keepends=True)].count("sent\n")
        if victim == "server":
            served.start()


def body(run: Run) -> object:
    return msgspec.to_builtins(run, enc_hook=as_list)


def all_sent(count: int) -> str:
    return "sent\n" * count + "all there\n"


@pytest.mark.parametrize(
    ("kind", "uploads"),
    [
        pytest.param("sqlite", 12, id="few"),
        pytest.param("sqlite", UPLOADS, marks=pytest.mark.long),
        pytest.param("postgresql", UPLOADS, marks=[pytest.mark.long, pytest.mark.xdist_group("postgresql")]),
    ],
)
def test_killed_uploads_leave_one_copy_of_each_run(tmp_path: Path, kind: str, uploads: int) -> None:
    folders = run_folders(tmp_path / "client", uploads)
    with running_server() if kind == "postgresql" else nullcontext() as database:
        store = str(tmp_path / "store.db") if database is None else database.database()
        crash = None if database is None else lambda: crash_postgresql(database._server.get_pid())
        served = Served(tmp_path / "server", store)
        try:
            killed = campaign(tmp_path / "client", served, random.Random(uploads), crash)
            with client(tmp_path / "client", served) as again:
                assert again.communicate(timeout=_PATIENCE_S)[0] == all_sent(uploads)
        finally:
            served.kill()
        print(f"{uploads} uploads, killed: {killed}")
        with open_store(store, create=False, aggregate=aggregate) as found:
            assert found.digests() == {folder.unique_id: digest_of(folder) for folder in folders}
            assert len(found.runs(RunFilter(), limit=None)) == uploads
            for folder in folders:
                assert body(found.load(folder.unique_id)) == body(read_run(folder, kind_of))
            assert sum(len(each.points) for each in found.summaries(SummaryFilter(headline=True))) == uploads
            assert found.check() == []


def test_one_run_that_two_clients_send_at_once_is_there_once(tmp_path: Path) -> None:
    folders = run_folders(tmp_path / "client", 6)
    served = Served(tmp_path / "server", str(tmp_path / "store.db"))
    try:
        with client(tmp_path / "client", served) as one, client(tmp_path / "client", served) as other:
            said = [process.communicate(timeout=_PATIENCE_S)[0] for process in (one, other)]
    finally:
        served.kill()
    assert said == [all_sent(6)] * 2
    with open_store(str(tmp_path / "store.db"), create=False) as found:
        assert found.digests() == {folder.unique_id: digest_of(folder) for folder in folders}
        assert found.check() == []


def test_a_server_on_a_full_disk_takes_nothing_and_says_so(small_disk: Path, tmp_path: Path) -> None:
    folders = run_folders(tmp_path / "client", 3)
    served = Served(tmp_path / "server", str(small_disk / "store.db"))
    try:
        filled = subprocess.run(["dd", "if=/dev/zero", f"of={small_disk / 'filler'}", "bs=4k"], capture_output=True)
        assert b"No space left" in filled.stderr
        with client(tmp_path / "client", served) as sending:
            said = sending.communicate(timeout=_PATIENCE_S)[0]
            assert sending.returncode == 3
        assert "full" in said
        (small_disk / "filler").unlink()
        with client(tmp_path / "client", served) as sending:
            assert sending.communicate(timeout=_PATIENCE_S)[0] == all_sent(3)
    finally:
        served.kill()
    with open_store(str(small_disk / "store.db"), create=False) as found:
        assert found.digests() == {folder.unique_id: digest_of(folder) for folder in folders}
        assert found.check() == []
