"""GPUs of AMD, of Intel, and instances of NVIDIA's: which are meant, and what is read of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import job as job_in
from replayed_gpus import ReplayedAmdSmi, intel_files
from replayed_nvml import ReplayedNvml

from benchwright.agent.machine.nvml import find_handles
from benchwright.agent.machine.other_gpus import amd_gpus, amd_handles, intel_cards, intel_gpus
from benchwright.agent.samplers.amd import AmdSampler
from benchwright.agent.samplers.base import SampledJob
from benchwright.agent.samplers.intel import IntelSampler
from benchwright.agent.samplers.nvidia import NvidiaSampler
from benchwright.agent.supervise.program_environment import visible_to
from benchwright.core.job import Job

INSTANCE = "MIG-3f1c2c63-8f4c-5b6e-9a2f-0d1e2f3a4b5c"


@pytest.mark.parametrize(
    ("tokens", "found"),
    [
        (None, ["gpu0", "gpu1"]),
        (["1", "0"], ["gpu1", "gpu0"]),
        (["GPU-c4d8dfd1-80a0-c6c2-cbf4-c49e6d276ed1"], ["gpu1"]),
        ([INSTANCE], [INSTANCE]),
        (["0", "MIG-none", "1"], ["gpu0"]),
    ],
)
def test_an_nvidia_gpu_is_meant_by_number_by_uuid_or_by_its_instance(tokens, found) -> None:
    assert find_handles(ReplayedNvml(gpus=2, mig={0: [INSTANCE]}), tokens) == found


def test_of_an_instance_only_what_is_its_own_is_told() -> None:
    sampler = NvidiaSampler(SampledJob(), ReplayedNvml(mig={0: [INSTANCE]}), [INSTANCE])
    (reading,) = sampler.sample(1)
    assert reading.values["memory_total_bytes"] == 18_253_611_008
    assert "load_percent" not in reading.values


def test_amd_tells_what_nvidia_tells_in_the_same_units() -> None:
    smi = ReplayedAmdSmi()
    sampler = AmdSampler(smi, amd_handles(smi, None))
    first, second = sampler.sample(1)
    assert first.values == {
        "memory_bytes": 283 << 20,
        "memory_total_bytes": 196_592 << 20,
        "load_percent": 97,
        "power_w": 142,
        "energy_j": pytest.approx(15.259),
        "sm_clock_mhz": 2100,
        "memory_clock_mhz": 1300,
        "temperature_c": 41,
    }
    assert (second.device, second.values["memory_bytes"]) == (1, 284 << 20)
    sampler.close()
    assert not smi.open


def test_what_an_amd_gpu_does_not_support_is_left_out() -> None:
    smi = ReplayedAmdSmi(lacks=("power",))
    (reading, _) = AmdSampler(smi, [0, 1]).sample(1)
    assert "power_w" not in reading.values
    assert reading.values["energy_j"] > 0


@pytest.mark.parametrize(
    ("tokens", "found"), [(None, [0, 1]), (["1"], [1]), (["GPU-72ff74a1"], [1]), (["0", "7"], [0]), ([], [])]
)
def test_amd_gpus_are_meant_as_hip_and_rocr_mean_them(tokens, found) -> None:
    assert amd_handles(ReplayedAmdSmi(), tokens) == found


def test_amd_gpus_are_found() -> None:
    first, _ = amd_gpus(ReplayedAmdSmi())
    assert (first["name"], first["memory_bytes"], first["driver"]) == ("AMD Instinct MI300X", 196_592 << 20, "6.12.12")


def test_intel_power_is_what_the_counter_rose_by(tmp_path: Path) -> None:
    cards = intel_cards(None, intel_files(tmp_path))
    assert [Path(card).name for card in cards] == ["card1", "card2"], "not the one without counters"
    assert [gpu["name"] for gpu in intel_gpus(str(tmp_path))] == ["Intel GPU 0x0bd5"] * 2
    sampler = IntelSampler(cards[:1])
    (before,) = sampler.sample(1_000_000_000)
    assert before.values == {"energy_j": 3500.0, "temperature_c": 38.0, "sm_clock_mhz": 1600.0}
    (Path(cards[0]) / "device/hwmon/hwmon5/energy1_input").write_text("3575000000")
    (after,) = sampler.sample(1_500_000_000)
    assert after.values["power_w"] == pytest.approx(150.0)


@pytest.mark.parametrize(
    ("environment", "tokens"),
    [
        ({}, None),
        ({"CUDA_VISIBLE_DEVICES": f"{INSTANCE},1"}, [INSTANCE, "1"]),
        ({"HIP_VISIBLE_DEVICES": "2,0"}, ["2", "0"]),
        ({"ROCR_VISIBLE_DEVICES": "GPU-58ff,3"}, ["GPU-58ff", "3"]),
        ({"ROCR_VISIBLE_DEVICES": "4,5,6", "HIP_VISIBLE_DEVICES": "2"}, ["6"]),
        ({"ZE_AFFINITY_MASK": "0.1,0.0,2"}, ["0", "2"]),
        ({"ONEAPI_DEVICE_SELECTOR": "level_zero:1,3"}, ["1", "3"]),
        ({"ONEAPI_DEVICE_SELECTOR": "level_zero:gpu"}, None),
        ({"ONEAPI_DEVICE_SELECTOR": "opencl:0"}, None),
        ({"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "1"}, []),
    ],
)
def test_every_makers_variable_says_what_a_program_sees(tmp_path: Path, environment, tokens) -> None:
    job: Job = job_in("true", folder=tmp_path)
    assert visible_to(job, environment) == tokens
