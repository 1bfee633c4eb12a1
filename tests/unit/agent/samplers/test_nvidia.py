"""What other programs do on a GPU, from what the driver tells; tried on an H200 with real ones."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from benchwright.agent.processes.process_tree import MARKER
from benchwright.agent.samplers.nvidia import _Strangers


class NotFound(Exception):
    """NVML's own, when nobody used the GPU."""


def driver(*rounds: list[tuple[int, int]] | None) -> SimpleNamespace:
    """An NVML that tells these shares (pid, percent) one round after the other; None: that there is nothing to tell."""
    told = iter(rounds)

    def utilization(_: object, since_us: int) -> list[SimpleNamespace]:
        shares = next(told)
        if shares is None:
            raise NotFound
        return [SimpleNamespace(pid=pid, smUtil=share, timeStamp=since_us + 1) for pid, share in shares]

    return SimpleNamespace(NVMLError=NotFound, nvmlDeviceGetProcessUtilization=utilization)


def sampled(nvml: SimpleNamespace, ours: set[int], rounds: int) -> list[dict[str, float]]:
    strangers = _Strangers(nvml, every_us=0)
    assert strangers.sample(0, object(), ours) == {}  # it only takes the time
    return [strangers.sample(0, object(), ours) for _ in range(rounds)]


@pytest.fixture
def neighbour() -> Iterator[int]:
    """A process that another job of this launch started."""
    words = [sys.executable, "-S", "-c", "input()"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, env={**os.environ, MARKER: "run/other.D0"}) as child:
        yield child.pid
        child.kill()


def test_what_strangers_use_is_told_and_what_the_job_uses_is_not() -> None:
    nvml = driver([(7, 90)], [(7, 60), (1, 30)], [(7, 60), (1, 30), (1, 40)], None)
    told = [{"others_percent": percent} for percent in (0, 30, 40, 0)]
    assert sampled(nvml, {7}, 4) == told


def test_nothing_is_told_as_long_as_the_drivers_numbers_may_be_those_of_another_namespace() -> None:
    assert sampled(driver([(90001, 99)], None), {7}, 2) == [{}, {}]


def test_another_job_of_the_same_launch_is_no_stranger(neighbour: int) -> None:
    assert sampled(driver([(7, 50), (neighbour, 50)]), {7}, 1) == [{"others_percent": 0}]


def test_the_driver_is_asked_about_strangers_only_now_and_then() -> None:
    """Its answer takes as long as all others together."""
    strangers = _Strangers(driver([(7, 50)], [(7, 50)], [(7, 50)]), every_us=3_600_000_000)
    assert [strangers.sample(0, object(), {7}) for _ in range(3)] == [{}, {}, {}]
