from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from benchwright.agent.processes import process_tree as processes
from benchwright.agent.processes.process_tree import descendants, read_stat, send_signal, signal_descendants

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def test_the_stat_of_this_process_is_right():
    stat = read_stat(os.getpid())
    assert (stat.parent, stat.group, stat.session) == (os.getppid(), os.getpgid(0), os.getsid(0))
    assert stat.rss_pages * processes.PAGE_BYTES > 1e6
    assert not stat.ended


def test_a_process_that_is_gone_has_none():
    child = subprocess.Popen(["true"])
    child.wait()
    assert read_stat(child.pid) is None


def test_a_signal_does_not_reach_another_process_with_the_same_number():
    child = subprocess.Popen(["sleep", "300"])
    stat = read_stat(child.pid)
    stat.start_ticks -= 1  # as if the number had been given to a new process since
    assert not send_signal(stat, signal.SIGKILL)
    assert child.poll() is None
    stat.start_ticks += 1
    assert send_signal(stat, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL


def test_the_scan_of_all_processes_finds_the_same_descendants():
    child = subprocess.Popen(["sleep", "300"])
    try:
        quick = {stat.pid for stat in descendants(os.getpid())}
        assert child.pid in quick
        assert child.pid in {stat.pid for stat in processes._descendants_by_scan(os.getpid())}
        assert child.pid in {stat.pid for stat in processes._descendants_by_psutil(os.getpid())}
    finally:
        child.kill()
        child.wait()


def test_children_of_other_threads_are_found():
    code = (
        "import subprocess,threading,time\n"
        "def f():\n    subprocess.Popen(['sleep','300']); time.sleep(300)\n"
        "threading.Thread(target=f,daemon=True).start(); time.sleep(300)"
    )
    child = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    try:
        deadline = time.monotonic() + 100
        while not descendants(child.pid):
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def test_those_to_spare_and_their_children_are_spared():
    spared = subprocess.Popen(["sh", "-c", "sleep 300 & wait"], start_new_session=True)
    victim = subprocess.Popen(["sleep", "300"], start_new_session=True)
    try:
        deadline = time.monotonic() + 100
        while not descendants(spared.pid):
            assert time.monotonic() < deadline
        others = frozenset(stat.pid for stat in descendants(os.getpid()) if stat.pid != victim.pid)
        assert spared.pid in others
        assert [stat.pid for stat in signal_descendants(os.getpid(), signal.SIGTERM, spare=others)] == [victim.pid]
        assert victim.wait() == -signal.SIGTERM
        assert spared.poll() is None
        assert len(descendants(spared.pid)) == 1
    finally:
        os.killpg(spared.pid, signal.SIGKILL)
        spared.wait()
        victim.kill()


def test_children_in_our_own_group_are_ended_and_we_are_not():
    code = (
        "import os,signal,subprocess\n"
        "from benchwright.agent.processes.process_tree import signal_descendants\n"
        "child = subprocess.Popen(['sleep', '300'])\n"
        "assert os.getpgid(child.pid) == os.getpgid(0) == os.getpid()\n"
        "told = [stat.pid for stat in signal_descendants(os.getpid(), signal.SIGKILL)]\n"
        "print(told == [child.pid], child.wait())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], start_new_session=True, capture_output=True, text=True, timeout=600
    )
    assert (done.returncode, done.stdout) == (0, "True -9\n"), done.stderr


def test_what_has_ended_is_not_signalled():
    child = subprocess.Popen(["true"], start_new_session=True)
    try:
        deadline = time.monotonic() + 100
        while not (stat := read_stat(child.pid)).ended:
            assert time.monotonic() < deadline
        others = frozenset(s.pid for s in descendants(os.getpid()) if s.pid != child.pid)
        assert stat.pid not in {s.pid for s in signal_descendants(os.getpid(), signal.SIGTERM, spare=others)}
    finally:
        child.wait()
