"""What this machine is: read in a few milliseconds, from the kernel and NVML."""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

from benchwright.agent.machine.nvml import as_text, find_handles, open_nvml
from benchwright.agent.processes.process_tree import LINUX
from benchwright.agent.supervise.program_environment import visible_devices
from benchwright.core.machine import Accelerator, Machine

_HYPERVISORS = {"KVM": "kvm", "QEMU": "qemu", "VMware": "vmware", "VirtualBox": "virtualbox", "Xen": "xen"}
_VENDORS = {"Microsoft Corporation": "hyper-v", "Amazon EC2": "aws", "Google": "google"}


def read_machine() -> Machine:
    """This machine as this process may use it."""
    uname = os.uname()
    return Machine(
        hostname=uname.nodename,
        system=uname.sysname,
        kernel=uname.release,
        architecture=uname.machine,
        cpu=_cpu_name() or uname.machine,
        cores=_usable_cores(),
        cores_total=os.cpu_count() or 1,
        memory_bytes=_memory_bytes(),
        python="{}.{}.{}".format(*sys.version_info[:3]),
        accelerators=_accelerators(),
        cpu_governor=_read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        virtual=_virtual(),
    )


def _read(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            return file.read(1 << 16).decode(errors="replace").strip() or None
    except OSError:
        return None


def _cpu_name() -> str | None:
    if not LINUX:
        return platform.processor() or None
    for line in (_read("/proc/cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model", "cpu model", "Hardware"):
            return value.strip()
    return None


def _usable_cores() -> int:
    """Cores this process may use: by its affinity, and by the limit of its control group."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for quota, period in _cpu_limits():
        if quota > 0 and period > 0:
            cores = min(cores, max(1, round(quota / period)))
    return cores


def _cpu_limits() -> list[tuple[int, int]]:
    limits = []
    for folder in _group_folders("cpu"):
        words = (_read(f"{folder}/cpu.max") or "").split()
        if len(words) == 2 and words[0].isdigit():
            limits.append((int(words[0]), int(words[1])))
        quota, period = _read(f"{folder}/cpu.cfs_quota_us"), _read(f"{folder}/cpu.cfs_period_us")
        if quota and period and quota.isdigit():
            limits.append((int(quota), int(period)))
    return limits


def _memory_bytes() -> int:
    """The machine's memory, or the least that one of our control groups allows."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for folder in _group_folders("memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            text = _read(f"{folder}/{name}")
            if text and text.isdigit():
                total = min(total, int(text))
    return total


def _group_folders(controller: str) -> list[str]:
    """The folders of this process's control group and of all above it, for both versions of the hierarchy."""
    folders = []
    for line in (_read("/proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            root = "/sys/fs/cgroup"
        elif controller in controllers.split(","):
            root = f"/sys/fs/cgroup/{controllers}"
        else:
            continue
        while True:
            folders.append(root + path.rstrip("/"))
            if path in ("/", ""):
                break
            path = os.path.dirname(path)
    return folders


def _virtual() -> str | None:
    """The container or hypervisor, where it can be told."""
    if not LINUX:
        return None
    if os.path.exists("/.dockerenv"):
        return "docker"
    if os.path.exists("/run/.containerenv"):
        return "podman"
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return "kubernetes"
    product = f"{_read('/sys/class/dmi/id/sys_vendor') or ''} {_read('/sys/class/dmi/id/product_name') or ''}"
    for sign, name in {**_HYPERVISORS, **_VENDORS}.items():
        if sign in product:
            return name
    flags = next((x for x in (_read("/proc/cpuinfo") or "").splitlines() if x.startswith("flags")), "")
    return "virtual machine" if " hypervisor" in flags else None


def _compute(nvml: Any, handle: object) -> float | None:
    """Which instructions it knows: 9.0 of an H200; None where the driver is too old to tell."""
    try:
        major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    except (nvml.NVMLError, AttributeError):
        return None
    return float(f"{major}.{minor}")


def _accelerators() -> tuple[Accelerator, ...]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves, numbered from 0 in its order."""
    nvml = open_nvml()
    if nvml is None:
        return ()
    try:
        driver = as_text(nvml.nvmlSystemGetDriverVersion())
        return tuple(
            Accelerator(
                index=index,
                name=as_text(nvml.nvmlDeviceGetName(handle)),
                memory_bytes=nvml.nvmlDeviceGetMemoryInfo(handle).total,
                uuid=as_text(nvml.nvmlDeviceGetUUID(handle)),
                driver=driver,
                compute=_compute(nvml, handle),
            )
            for index, handle in enumerate(find_handles(nvml, visible_devices(os.environ)))
        )
    except nvml.NVMLError:
        return ()
    finally:
        nvml.nvmlShutdown()
