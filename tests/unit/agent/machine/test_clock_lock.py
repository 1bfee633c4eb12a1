"""Clocks are locked, told, and given back however a run ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import wait_for
from replayed_nvml import ReplayedNvml

from benchwright.agent.machine.clock_lock import CannotLock, ClockLock, lock
from benchwright.core.errors import InvalidInput
from benchwright.executors.observer import Observer
from benchwright.options.table import Options
from benchwright.runner.readiness import locked_clocks

HOLDER = """
import sys
from pathlib import Path
sys.path[:0] = [{support!r}, {source!r}]
from replayed_nvml import ReplayedNvml
from benchwright.agent.machine import clock_lock
clock_lock.open_nvml = lambda: ReplayedNvml(Path({log!r}), gpus=2, refuses={refuses!r})
sys.exit(clock_lock.main(sys.argv[1:]))
"""
TESTS = Path(__file__).parents[3]


class Holder:
    def __init__(self, folder: Path, refuses: str = "") -> None:
        self.log = folder / "log"
        source = str(TESTS.parent / "src")
        program = folder / "holder.py"
        program.write_text(
            HOLDER.format(support=str(TESTS / "support"), source=source, log=str(self.log), refuses=refuses)
        )
        self.command = (sys.executable, str(program))

    def done(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[Holder]:
    return Holder(tmp_path)


def test_both_gpus_are_locked_at_the_nearest_clock_and_given_back(holder: Holder) -> None:
    held = ClockLock("1500", holder.command)
    assert held.clocks == [1500, 1500]
    assert holder.done() == ["lock gpu0 1500 1500", "lock gpu1 1500 1500"]
    assert held.close() is None
    assert holder.done()[2:] == ["unlock gpu0", "unlock gpu1"]


def test_by_default_it_is_a_clock_that_most_loads_sustain() -> None:
    assert lock(ReplayedNvml(), ["gpu0"], "auto") == [1380]  # of those it has, next to 70 % of 1980
    assert lock(ReplayedNvml(), ["gpu0"], "9999") == [1980]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_killed_gives_them_back(holder: Holder, number: signal.Signals) -> None:
    program = (
        f"import sys, time; sys.path.insert(0, {str(TESTS.parent / 'src')!r})\n"
        "from benchwright.agent.machine.clock_lock import ClockLock\n"
        f"held = ClockLock('1500', {holder.command!r}); print('held', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"held\n"
        os.kill(run.pid, number)
    assert wait_for(lambda: holder.done()[2:] == ["unlock gpu0", "unlock gpu1"])


def test_a_child_that_outlives_the_run_and_holds_its_pipe_does_not_keep_them_locked(holder: Holder) -> None:
    program = (
        f"import os, sys, time; sys.path.insert(0, {str(TESTS.parent / 'src')!r})\n"
        "from benchwright.agent.machine.clock_lock import ClockLock\n"
        f"held = ClockLock('1500', {holder.command!r})\n"
        "child = os.fork()\n"
        "if child == 0: time.sleep(60); os._exit(0)\n"
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program], check=False)
    assert wait_for(lambda: holder.done()[2:] == ["unlock gpu0", "unlock gpu1"], 40.0)


def test_without_permission_nothing_is_locked_and_the_reason_told(tmp_path: Path) -> None:
    holder = Holder(tmp_path, refuses="lock gpu1")
    with pytest.raises(CannotLock, match="Insufficient Permissions; locking clocks usually takes root"):
        ClockLock("1500", holder.command)
    assert holder.done() == ["lock gpu0 1500 1500", "unlock gpu0"]


def test_a_holder_that_was_killed_is_told_with_what_to_do(holder: Holder) -> None:
    held = ClockLock("1500", holder.command)
    os.kill(held._holder.pid, signal.SIGKILL)
    assert "run nvidia-smi -rgc" in (held.close() or "")


@pytest.mark.parametrize(
    ("wanted", "on", "why"), [("fast", None, "is no clock"), ("1500", "ssh:node", "this machine only")]
)
def test_what_cannot_be_meant_is_refused(wanted: str, on: str | None, why: str) -> None:
    with pytest.raises(InvalidInput, match=why), locked_clocks(wanted, Options(on=on), Observer()):
        pass


def test_a_machine_without_a_gpu_says_so() -> None:
    with pytest.raises(InvalidInput, match="no NVIDIA GPU"), locked_clocks("auto", Options(), Observer()):
        pass


def test_nobody_asked_nothing_happens() -> None:
    with locked_clocks(None, Options(on="ssh:node"), Observer()) as labels:
        assert labels == {}
