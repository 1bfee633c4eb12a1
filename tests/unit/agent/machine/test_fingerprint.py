from __future__ import annotations

import os
import sys
import time
from types import SimpleNamespace

import pytest
from processes import quickest

from benchwright.agent.machine import fingerprint
from benchwright.agent.machine.control_group import MemoryLimit
from benchwright.agent.machine.fingerprint import read_machine
from benchwright.agent.machine.packages import list_packages


def test_the_machine_is_this_one():
    machine = read_machine()
    assert machine.hostname == os.uname().nodename
    assert machine.system == os.uname().sysname
    assert 1 <= machine.cores <= machine.cores_total == os.cpu_count()
    assert 100e6 < machine.memory_bytes <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert machine.python == sys.version.split()[0]
    assert machine.cpu


def test_it_is_the_same_each_time_and_quick():
    first = read_machine()

    def again_s() -> float:
        began = time.process_time()
        assert read_machine().fingerprint == first.fingerprint
        return time.process_time() - began

    assert quickest(again_s, 0.2) < 0.2


@pytest.mark.parametrize(
    ("quota", "limits", "cores", "memory"),
    [
        (None, [], 8, 1 << 34),
        (2.4, [1 << 33, 1 << 32], 2, 1 << 32),
        (0.3, [1 << 60], 1, 1 << 34),
        (99.0, [], 8, 1 << 34),
    ],
)
def test_control_groups_limit_cores_and_memory(monkeypatch, quota, limits, cores, memory):
    monkeypatch.setattr(fingerprint, "read_cpu_quota", lambda root: quota)
    found = [MemoryLimit(limit_bytes=limit, used_bytes=0) for limit in limits]
    monkeypatch.setattr(fingerprint, "read_memory_limits", lambda root: iter(found))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    monkeypatch.setattr(os, "sysconf", lambda name: 1 << 22 if name == "SC_PHYS_PAGES" else 4096)
    machine = read_machine()
    assert (machine.cores, machine.memory_bytes) == (cores, memory)


def test_packages_are_listed_by_name_and_version(tmp_path):
    for name in ("Some_Package-1.2.3.dist-info", "other.one-2.0-py3.11.egg-info", "notes.txt", "bare.dist-info"):
        (tmp_path / "first" / name).mkdir(parents=True)
    (tmp_path / "second" / "some_package-9.dist-info").mkdir(parents=True)
    found = list_packages([str(tmp_path / "first"), str(tmp_path / "absent"), str(tmp_path / "second")])
    assert found == {"other-one": "2.0", "some-package": "1.2.3"}


def test_the_packages_of_this_python_include_pytest():
    assert list_packages(sys.path)["pytest"] == pytest.__version__


class NoAnswer(Exception):
    pass


def nvml_of_one_gpu(capability: object) -> SimpleNamespace:
    def asked(_: object) -> object:
        if capability is None:
            raise NoAnswer
        return capability

    return SimpleNamespace(
        NVMLError=NoAnswer,
        nvmlSystemGetDriverVersion=lambda: "580.1",
        nvmlDeviceGetCount=lambda: 1,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetName=lambda _: b"NVIDIA H200",
        nvmlDeviceGetUUID=lambda _: "GPU-1",
        nvmlDeviceGetMemoryInfo=lambda _: SimpleNamespace(total=1 << 37),
        nvmlDeviceGetCudaComputeCapability=asked,
        nvmlShutdown=lambda: None,
    )


@pytest.mark.parametrize(("capability", "told"), [((9, 0), 9.0), ([8, 9], 8.9), ((12, 1), 12.1), (None, None)])
def test_a_gpu_tells_what_it_can_compute(monkeypatch, capability, told):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(fingerprint, "open_nvml", lambda: nvml_of_one_gpu(capability))
    (gpu,) = read_machine().accelerators
    assert (gpu.name, gpu.compute) == ("NVIDIA H200", told)
