"""What every sampler must do."""

from __future__ import annotations

import math
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest
from plugin_package import variants

from benchwright.agent.machine.nvml import open_nvml
from benchwright.agent.samplers.base import SampledJob, Sampler
from benchwright.agent.samplers.registry import SAMPLERS

UNITS = (
    *("_bytes", "_percent", "_s", "_w", "_j", "_mhz", "_c"),
    *("processes", "throttle", "load_1m", "own_share"),
)


@pytest.fixture
def subject() -> Iterator[SampledJob]:
    """This process, with a child that is busy."""
    child = subprocess.Popen(["sh", "-c", "while :; do :; done"])
    yield SampledJob()
    child.kill()
    child.wait()


@pytest.fixture(params=variants(SAMPLERS))
def open_sampler(request: pytest.FixtureRequest, plugins: None) -> Callable[[SampledJob], Sampler | None]:
    return SAMPLERS.load(request.param)


def test_it_opens_or_says_that_there_is_nothing(open_sampler, subject):
    sampler = open_sampler(subject)
    if sampler is None:
        assert open_nvml() is None
        return
    assert sampler.name.isidentifier()
    assert 0 < sampler.budget <= 0.005
    sampler.close()


def test_it_gives_finite_numbers_whose_names_carry_their_units(open_sampler, subject):
    sampler = open_sampler(subject)
    if sampler is None:
        pytest.skip("this machine has nothing for it to sample")
    values: dict[str, float] = {}
    for _ in range(2):
        subject.begin_round()
        for sample in sampler.sample(time.perf_counter_ns()):
            values.update(sample.values)
        time.sleep(0.3)
    sampler.close()
    assert values
    for name, value in values.items():
        assert name.endswith(UNITS), name
        assert 0 <= value < math.inf, name


def test_it_bears_that_every_process_is_gone(open_sampler):
    sampler = open_sampler(SampledJob(root=2**22 + 1))
    if sampler is None:
        pytest.skip("this machine has nothing for it to sample")
    samples = list(sampler.sample(time.perf_counter_ns()))
    sampler.close()
    assert all(0 <= value < math.inf for sample in samples for value in sample.values.values())
