from __future__ import annotations

import os
import signal

import pytest

from benchwright.executors.interruption import finishes_on_sigterm, stops_on_signals


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_sigterm_stops_a_phase() -> None:
    stopped: list[bool] = []
    with stops_on_signals(lambda: stopped.append(True)) as asked:
        terminate()
        assert asked()
    assert stopped == [True]


def test_what_is_to_be_finished_is_not_stopped_by_sigterm() -> None:
    stopped: list[bool] = []
    before = signal.getsignal(signal.SIGTERM)
    with finishes_on_sigterm() as asked:
        with stops_on_signals(lambda: stopped.append(True)):
            terminate()
        assert asked.is_set()
    assert stopped == []
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_second_sigterm_is_as_ctrl_c() -> None:
    stopped: list[bool] = []
    with finishes_on_sigterm():
        terminate()
        with stops_on_signals(lambda: stopped.append(True)):
            terminate()
    assert stopped == [True]
    with finishes_on_sigterm():
        terminate()
        with pytest.raises(KeyboardInterrupt):
            terminate()
