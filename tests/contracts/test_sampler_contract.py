"""What every sampler must do."""

from __future__ import annotations

import math
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from plugin_package import variants
from replayed_gpus import ReplayedAmdSmi, intel_files
from replayed_nvml import ReplayedNvml

from benchwright.agent.machine import other_gpus
from benchwright.agent.machine.nvml import open_nvml
from benchwright.agent.samplers import amd, intel, nvidia
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


REPLAYED = "replayed "
GPUS = ("nvidia", "amd", "intel")


@pytest.fixture(params=[*variants(SAMPLERS), *(f"{REPLAYED}{name}" for name in GPUS)])
def open_sampler(
    request: pytest.FixtureRequest, plugins: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[SampledJob], Sampler | None]:
    """Of GPUs also with a driver that answers as a real one did."""
    if request.param.startswith(REPLAYED):
        monkeypatch.setattr(nvidia, "open_nvml", ReplayedNvml)
        monkeypatch.setattr(amd, "open_amdsmi", ReplayedAmdSmi)
        cards = intel_files(tmp_path)
        monkeypatch.setattr(intel, "intel_cards", lambda devices: other_gpus.intel_cards(devices, cards))
    return SAMPLERS.load(request.param.removeprefix(REPLAYED))


def test_it_opens_or_says_that_there_is_nothing(open_sampler, subject):
    sampler = open_sampler(subject)
    if sampler is None:
        assert open_nvml() is None
        return
    assert sampler.name.isidentifier()
    assert 0 < sampler.budget <= 0.01
    sampler.close()


def test_it_gives_finite_numbers_whose_names_carry_their_units(open_sampler, subject):
    sampler = open_sampler(subject)
    if sampler is None:
        pytest.skip("this machine has nothing for it to sample")
    values: dict[str, float] = {}
    for pause_s in (0, 0.1):
        time.sleep(pause_s)
        subject.begin_round()
        for sample in sampler.sample(time.perf_counter_ns()):
            values.update(sample.values)
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
