"""What every board must do."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from adb_device import AdbDevice, attached
from local_shell import LocalShell
from processes import carrying, wait_for
from ssh_server import SshServer, another_home, start_ssh_server

from benchwright.core.errors import CannotMeasure
from benchwright.executors.android.adb import AdbShell
from benchwright.executors.android.board import AdbBoard
from benchwright.executors.boards.base import Board, BoardCommand, BoardOutput
from benchwright.executors.boards.shell_board import ShellBoard
from benchwright.executors.ssh_connection import SshConnection

TOOLS = "sh cat date df env find grep kill mkdir mv nproc rm rmdir sed setsid sha256sum sleep stat tail tar taskset touch uname xargs"


@pytest.fixture(scope="module")
def ssh_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    """Its logins have a home of their own and few programs, none of them Python."""
    home = tmp_path_factory.mktemp("home")
    server = start_ssh_server(tmp_path_factory.mktemp("ssh"), login=another_home(home, programs=TOOLS))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def phone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdbDevice]:
    with attached(tmp_path_factory.mktemp("adb")) as device:
        yield device


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.xdist_group(f"board {name}")) for name in ("local", "ssh", "adb")],
)
def another_board(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Board]:
    """Makes one that is to be opened."""
    if request.param == "local":
        return lambda: ShellBoard(LocalShell(), str(tmp_path_factory.mktemp("depot")))
    if request.param == "adb":
        return lambda: AdbBoard(AdbShell(request.getfixturevalue("phone").serial))
    server = request.getfixturevalue("ssh_server")
    return lambda: ShellBoard(SshConnection(server.node(), str(server.folder / "key"), "python3", server.client))


@pytest.fixture(scope="module")
def board(another_board: Callable[[], Board]) -> Iterator[Board]:
    """Opened once for all tests."""
    with another_board() as opened:
        yield opened


class Printed(BoardOutput):
    def __init__(self) -> None:
        self.out = self.err = b""
        self.pid: int | None = None

    def started(self, pid: int) -> None:
        self.pid = pid

    def stdout(self, data: bytes) -> None:
        self.out += data

    def stderr(self, data: bytes) -> None:
        self.err += data


def never() -> bool:
    return False


def sh(board: Board, script: str, *, stopped=never, **fields):
    printed = Printed()
    command = BoardCommand(argv=("sh", "-c", script), cwd=board.folder, **fields)
    return board.run(command, printed, stopped), printed


def test_it_says_what_it_is(board):
    found = board.properties()
    assert found.machine.architecture == os.uname().machine
    assert found.machine.cores >= 1
    assert found.free_bytes > 0


def test_a_program_that_is_sent_runs_and_its_files_come_back(board, tmp_path):
    program = tmp_path / "my program"
    program.write_text("#!/bin/sh\necho made by $1 >made\n")
    program.chmod(0o755)
    there = f"{board.folder}/a b/my program"
    board.push({there: str(program)})
    ended = board.run(BoardCommand(argv=(there, "it's me"), cwd=board.folder), Printed(), never)
    assert (ended.exit_code, ended.signal, ended.detail) == (0, None, None)
    board.pull(f"{board.folder}/made", str(tmp_path / "made here"))
    assert (tmp_path / "made here").read_text() == "made by it's me\n"


def test_stdout_and_stderr_come_apart_with_the_exit_code(board):
    ended, printed = sh(board, "echo out; echo err >&2; printf '\\036not a report\\n' >&2; exit 7")
    assert (ended.exit_code, printed.out, printed.err) == (7, b"out\n", b"err\n\x1enot a report\n")
    assert printed.pid > 0


def test_the_environment_and_odd_words_arrive_as_they_are(board):
    odd = "a 'b' \"c\" $HOME `id` \\ * é \n end"
    printed = Printed()
    command = BoardCommand(
        argv=("sh", "-c", 'printf "%s|%s|%s" "$1" "$ODD" "${HOME-gone}"', "sh", odd),
        cwd=board.folder,
        env={"ODD": odd, "HOME": None},
    )
    board.run(command, printed, never)
    assert printed.out.decode() == f"{odd}|{odd}|gone"


def test_a_signal_is_told_from_an_exit_code(board):
    ended, _ = sh(board, "kill -SEGV $$")
    assert (ended.exit_code, ended.signal) == (None, 11)


def test_a_command_that_is_not_there_never_started(board):
    printed = Printed()
    ended = board.run(BoardCommand(argv=("no-such-program",), cwd=board.folder), printed, never)
    assert ended.exit_code is None
    assert "was not found" in ended.detail
    assert printed.pid is None


def test_a_timeout_ends_the_program_and_its_children(board):
    marker = f"{os.getpid()}-{time.time_ns()}"
    ended, _ = sh(board, "sleep 3000 & sleep 3000", env={"BOARD_TEST": marker}, timeout_s=0.5, grace_s=1)
    assert ended.timed_out
    assert wait_for(lambda: carrying(f"BOARD_TEST={marker}") == [])


def test_a_program_that_ignores_the_request_to_end_is_killed(board):
    ended, _ = sh(board, "trap '' TERM; while :; do sleep 0.1; done", timeout_s=1, grace_s=1)
    assert ended.timed_out
    assert ended.signal == 9


def test_a_stop_ends_the_program(board):
    asked = threading.Event()
    threading.Timer(0.5, asked.set).start()
    ended, _ = sh(board, "sleep 300", stopped=asked.is_set, grace_s=1)
    assert ended.stopped


def test_cores_are_kept(board):
    core = min(os.sched_getaffinity(0))
    ended, printed = sh(board, "grep Cpus_allowed_list /proc/self/status", cores=(core,))
    assert (ended.exit_code, printed.out.split()[-1]) == (0, str(core).encode())


def test_its_time_is_that_of_the_program(board):
    ended, _ = sh(board, "sleep 0.3")
    assert 0.3 <= ended.duration_s < 50
    assert ended.resolution_s <= 0.01


def test_what_is_missing_cannot_be_pulled(board, tmp_path):
    with pytest.raises(CannotMeasure, match="nothing-here"):
        board.pull(f"{board.folder}/nothing-here", str(tmp_path / "got"))
    assert not (tmp_path / "got").exists()


def test_nothing_outside_its_folder_is_written_or_removed(board, tmp_path):
    kept = tmp_path / "kept"
    kept.write_text("mine")
    for there in (str(kept), f"{board.folder}/../other", board.folder):
        with pytest.raises(CannotMeasure, match="the folder of this run"):
            board.remove(there)
        with pytest.raises(CannotMeasure, match="the folder of this run"):
            board.push({there: str(kept)})
    assert kept.read_text() == "mine"


def test_a_folder_keeps_its_modes_links_and_names(board, tmp_path):
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub" / "run me").write_text("#!/bin/sh\necho ran\n")
    (tree / "sub" / "run me").chmod(0o755)
    (tree / "new\nline é").write_text("x")
    (tree / "link").symlink_to("sub/run me")
    board.push({f"{board.folder}/tree": str(tree)})
    board.pull(f"{board.folder}/tree", str(tmp_path / "back"))
    assert sorted(p.name for p in (tmp_path / "back").iterdir()) == ["link", "new\nline é", "sub"]
    assert os.readlink(tmp_path / "back" / "link") == "sub/run me"
    assert (tmp_path / "back" / "sub" / "run me").stat().st_mode & 0o777 == 0o755
    ended, printed = sh(board, "tree/link")
    assert (ended.exit_code, printed.out) == (0, b"ran\n")


def test_nothing_stays_when_it_is_closed(board, another_board):
    """The last test: a phone has room for one."""
    board.__exit__(None, None, None)
    with another_board() as another:
        folder = another.folder
        assert sh(another, "echo made >made")[0].exit_code == 0
        assert Path(folder).exists()
    assert not Path(folder).exists()
