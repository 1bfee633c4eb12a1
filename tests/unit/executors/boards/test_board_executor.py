"""Jobs on boards: what is sent with them, what is refused, and what a lost board leaves."""

from __future__ import annotations

import gzip
import shutil
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import events
from builders import job as job_in
from local_shell import LocalShell
from processes import carrying, wait_for
from ssh_server import SshServer, another_home, start_ssh_server

from benchwright.core.job import Job
from benchwright.executors.base import Listener, Site
from benchwright.executors.boards.executor import BoardExecutor
from benchwright.executors.boards.shell_board import Ended, ReportFilter, ShellBoard
from benchwright.executors.ssh_host import HostExecutor

TOOLS = "sh cat date df env find grep kill ls mkdir mv nproc rm rmdir sed setsid sha256sum sleep stat tail tar taskset touch uname xargs"


pytestmark = pytest.mark.xdist_group("board executor")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In the folder that is sent."""
    base = tmp_path_factory.mktemp("work") / "base"
    (base / "runs").mkdir(parents=True)
    return base


@pytest.fixture(scope="module")
def board(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoardExecutor]:
    """One for all tests."""
    with BoardExecutor(ShellBoard(LocalShell(), str(tmp_path_factory.mktemp("depot"))), base=str(base)) as made:
        yield made


@pytest.fixture
def work(base: Path) -> Iterator[Path]:
    """Empty but for the base folder."""
    yield base.parent
    for path in [*base.parent.iterdir(), *(base / "runs").iterdir()]:
        if path != base:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def make_job(work: Path, *argv: str, **fields: Any) -> Job:
    return job_in(*argv, folder=work / "base" / "runs" / "r", cwd=str(work), **({"grace_s": 1.0} | fields))


def log_of(job: Job) -> str:
    return gzip.decompress(Path(job.log + ".gz").read_bytes()).decode()


def test_the_folder_is_sent_without_the_base_folder_in_it(board, work):
    (work / "data").write_text("1 2 3")
    (work / "base" / "huge").write_text("not needed")
    job = make_job(work, "ls")
    [outcome] = board.run([job], Listener())
    assert (outcome.exit_code, log_of(job)) == (0, "data\n")


def test_a_python_environment_is_refused(board, work):
    (work / "venv" / "bin").mkdir(parents=True)
    (work / "venv" / "pyvenv.cfg").write_text("")
    (work / "venv" / "bin" / "python").symlink_to("/bin/sh")
    [outcome] = board.run([make_job(work, str(work / "venv" / "bin" / "python"), "x.py")], Listener())
    assert outcome.exit_code is None
    assert "is a Python environment; name a program" in outcome.detail


def test_a_program_for_another_processor_is_refused(board, work):
    there = board.machine().architecture
    number, name = (62, "x86_64") if there != "x86_64" else (183, "aarch64")
    program = work / "prog"
    program.write_bytes(b"\x7fELF\x02\x01" + bytes(12) + struct.pack("<H", number) + bytes(100))
    program.chmod(0o755)
    [outcome] = board.run([make_job(work, "./prog")], Listener())
    assert f"is a program for {name}, the board is {there}" in outcome.detail


def test_nothing_is_claimed_about_memory_and_cpu_time(board, work):
    job = make_job(work, "true")
    board.run([job], Listener())
    end = events(job)[-1]
    assert (end["cpu_s"], end["max_rss_bytes"]) == (None, None)
    assert not [event for event in events(job) if event["event"] == "sample"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    home, hidden = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("hidden")
    made = start_ssh_server(tmp_path_factory.mktemp("ssh"), login=another_home(home, programs=TOOLS, hidden=[hidden]))
    made.hidden = hidden  # type: ignore[attr-defined]
    yield made
    made.stop()


@pytest.fixture
def unseen(server: SshServer, request: pytest.FixtureRequest) -> Path:
    """A folder that the board does not see."""
    folder = server.hidden / request.node.name  # type: ignore[attr-defined]
    (folder / "base" / "runs").mkdir(parents=True)
    return Path(folder)


def test_a_machine_without_python_is_a_board(server, unseen):
    site = Site(folder=str(unseen / "base"), system=server.system())
    with HostExecutor(server.node(), site, server.client) as executor:
        assert executor.machine().python == "unknown"
        job = make_job(unseen, "sh", "-c", "pwd")
        [outcome] = executor.run([job], Listener())
        assert (outcome.exit_code, outcome.detail) == (0, None)
        assert "/.cache/benchwright/node/runs/" in log_of(job)


def test_a_board_that_is_lost_keeps_what_came_and_the_job_has_no_end(server, unseen):
    class Cut(Listener):
        def on_output(self, job_id: str, text: str) -> None:
            threading.Thread(target=server.cut_connections).start()

    mark = str(unseen)
    job = make_job(unseen, "sh", "-c", "echo early; sleep 300", echo=True, env={"BOARD_TEST": mark})
    site = Site(folder=str(unseen / "base"), system=server.system())
    with HostExecutor(server.node(), site, server.client) as executor:
        [outcome] = executor.run([job], Cut())
    assert (outcome.exit_code, outcome.stopped) == (None, False)
    assert "the connection to node 'far'" in outcome.detail
    assert "was lost while it ran" in outcome.detail
    assert log_of(job).startswith("early\n")  # ssh may add a last word
    assert events(job)[-1]["event"] != "end"
    assert wait_for(lambda: carrying(f"BOARD_TEST={mark}") == [])


@pytest.mark.parametrize("cut", range(1, 12))
def test_reports_are_found_wherever_the_stream_is_cut(cut):
    printed: list[bytes] = []
    stream = b"before\n\x1eword started 7\n\x1eother\nafter\x1eword ended 0 0 0 1.0 2.0\n"
    reports = ReportFilter("word", printed.append)
    for start in range(0, len(stream), cut):
        reports.feed(stream[start : start + cut])
    reports.finish()
    assert b"".join(printed) == b"before\n\x1eother\nafter"
    assert reports.reports == [["started", "7"], ["ended", "0", "0", "0", "1.0", "2.0"]]


def test_a_clock_that_is_set_while_a_program_runs_does_not_change_its_time():
    begun, booted = 1_700_000_000_000_000_000, 100.0
    fine = Ended.read(["0", str(begun), str(begun + 2_500_000_000), f"{booted:.2f}", f"{booted + 2.5:.2f}"])
    assert (fine.duration_s, fine.resolution_s) == (2.5, 1e-6)
    an_hour_later = begun + 3_600_000_000_000
    stepped = Ended.read(["0", str(begun), str(an_hour_later), f"{booted:.2f}", f"{booted + 2.5:.2f}"])
    assert (stepped.duration_s, stepped.resolution_s) == (2.5, 0.01)
    no_fine_clock = Ended.read(["0", "0", "0", f"{booted:.2f}", f"{booted + 2.5:.2f}"])
    assert (no_fine_clock.duration_s, no_fine_clock.resolution_s) == (2.5, 0.01)
