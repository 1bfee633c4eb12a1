"""Pauses between launches."""

from __future__ import annotations

import pytest
from builders import job

from benchwright.executors.observer import Observer
from benchwright.runner.readiness import Cooldown


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Told(Observer):
    def __init__(self) -> None:
        self.said: list[str] = []

    def on_step(self, name: str, what: str, log: str | None = None) -> None:
        self.said.append(what)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cooldown(clock: Clock) -> Cooldown:
    return Cooldown(clock, clock.sleep)


def test_the_first_launch_needs_no_cooldown_but_its_own_pause(clock: Clock, cooldown: Cooldown) -> None:
    cooldown.wait([job(cooldown_s=30.0, wait_s=2.0)], lambda: False, Observer())
    assert clock.now == pytest.approx(102.0)


def test_time_spent_otherwise_counts(clock: Clock, cooldown: Cooldown) -> None:
    cooldown.ended()
    clock.now += 10
    told = Told()
    cooldown.wait([job(cooldown_s=30.0, wait_s=2.0)], lambda: False, told)
    assert clock.now == pytest.approx(132.0)
    assert told.said == ["waiting 22.0 s before job"]
    clock.now += 100
    cooldown.wait([job(cooldown_s=30.0)], lambda: False, told)
    assert clock.now == pytest.approx(232.0)
    assert len(told.said) == 1


def test_a_run_that_is_stopped_does_not_wait(clock: Clock, cooldown: Cooldown) -> None:
    cooldown.ended()
    cooldown.wait([job(cooldown_s=3600.0)], lambda: clock.now > 101, Observer())
    assert clock.now == pytest.approx(101.1, abs=0.11)
