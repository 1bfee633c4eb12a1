"""Tools end with benchwright, and locks end with whoever holds them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from processes import wait_for

from benchwright.environments.locks import locked
from benchwright.environments.tools import Stopped, Tools

PY = sys.executable
TELL_AND_SLEEP = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def pid_in(path: Path) -> int:
    assert wait_for(lambda: path.exists() and path.read_text() != "")
    return int(path.read_text())


def test_output_goes_to_the_log_and_the_code_comes_back(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = Tools().run([PY, "-c", "print('out'); import sys; sys.exit('err')"], log=str(log), cwd=str(tmp_path))
    assert code == 1
    assert {"out", "err"} <= set(log.read_text().splitlines())


def test_a_program_that_is_not_there_is_a_failure_not_an_exception(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert Tools().run(["/nowhere/uv", "venv"], log=str(log)) != 0
    assert "/nowhere/uv: No such file" in log.read_text()


def test_stop_ends_a_tool_and_what_it_started(tmp_path: Path) -> None:
    tools = Tools()
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {TELL_AND_SLEEP!r}, sys.argv[1]])"
    caught: list[BaseException] = []

    def work() -> None:
        try:
            tools.run([PY, "-c", child, str(tmp_path / "pid")], log=str(tmp_path / "log"))
        except Stopped as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    grandchild = pid_in(tmp_path / "pid")
    tools.stop()
    thread.join(60)
    assert caught
    assert wait_for(lambda: not alive(grandchild))
    with pytest.raises(Stopped):
        tools.run([PY, "-c", "pass"], log=str(tmp_path / "log"))


def test_a_tool_does_not_outlive_a_benchwright_that_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom benchwright.environments.tools import Tools\n"
        f"Tools().run([sys.executable, '-c', {TELL_AND_SLEEP!r}, sys.argv[1]], log=sys.argv[2])"
    )
    parent = subprocess.Popen([PY, "-c", code, str(tmp_path / "pid"), str(tmp_path / "log")])
    tool = pid_in(tmp_path / "pid")
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert wait_for(lambda: not alive(tool))


def test_a_lock_is_waited_for_and_freed_by_a_kill(tmp_path: Path) -> None:
    lock, held = tmp_path / "lock", tmp_path / "held"
    code = (
        "import sys, time\nfrom benchwright.environments.locks import locked\n"
        "with locked(sys.argv[1]):\n    open(sys.argv[2], 'w').write('yes')\n    time.sleep(600)"
    )
    holder = subprocess.Popen([PY, "-c", code, str(lock), str(held)])
    assert wait_for(held.exists)
    waited: list[float] = []
    killer = threading.Timer(0.3, holder.kill)
    killer.start()
    with locked(str(lock), waiting=lambda: waited.append(time.monotonic())):
        assert len(waited) == 1
    holder.wait()


def test_waiting_for_a_lock_can_be_given_up(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    with locked(path), pytest.raises(InterruptedError), locked(path, stopped=lambda: True):
        pass


def test_a_lock_is_held_until_the_child_that_inherited_it_ends(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    with locked(path) as handle:
        child = subprocess.Popen([PY, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(handle,))
    with pytest.raises(InterruptedError), locked(path, stopped=lambda: True):
        pass
    child.communicate(b"\n")
    with locked(path):
        pass
    assert os.path.exists(path)
