"""Description of this machine, read in a few milliseconds from the kernel and NVML."""

from __future__ import annotations

import os
import platform
import sys
import time
from typing import Any

import msgspec

from benchwright.agent.machine.control_group import read_cpu_quota, read_memory_limits
from benchwright.agent.machine.nvml import as_text, find_handles, open_nvml
from benchwright.agent.machine.other_gpus import amd_gpus, intel_gpus, open_amdsmi
from benchwright.agent.processes.kernel import read_text
from benchwright.agent.processes.process_tree import LINUX
from benchwright.agent.supervise.program_environment import visible_devices
from benchwright.core.machine import Accelerator, Machine, platform_name

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
        cpu_governor=read_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        virtual=_virtual(),
        platform=platform_name(f"{_platform()}-{_cpu_name() or ''}"),
    )


def machine_body() -> dict[str, Any]:
    """The same, to be sent."""
    body: dict[str, Any] = msgspec.to_builtins(read_machine())
    return body


def machine_uptime_s() -> float:
    """Seconds since this machine started."""
    boot_clock = getattr(time, "CLOCK_BOOTTIME", None)  # Linux only; elsewhere the monotonic clock comes closest
    return time.monotonic() if boot_clock is None else time.clock_gettime(boot_clock)


def _platform() -> str:
    """`platform.platform()`, without reading the whole interpreter to find the C library's version."""
    libc = os.confstr("CS_GNU_LIBC_VERSION") if "CS_GNU_LIBC_VERSION" in os.confstr_names else None
    uname = os.uname()
    if not LINUX or not libc:
        return platform.platform()
    return f"{uname.sysname}-{uname.release}-{uname.machine}-with-{libc.replace(' ', '')}"


def _cpu_name() -> str | None:
    if not LINUX:
        return platform.processor() or None
    for line in (read_text("/proc/cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model", "cpu model", "Hardware"):
            return value.strip()
    return None


def _usable_cores() -> int:
    """Cores this process may use: by its affinity and its control groups."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = read_cpu_quota("/")
    return cores if quota is None else min(cores, max(1, round(quota)))


def _memory_bytes() -> int:
    """The machine's memory, or the least that one of our control groups allows."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([total, *(limit.limit_bytes for limit in read_memory_limits("/"))])


def _virtual() -> str | None:
    """The container or hypervisor, if there is a sign of one."""
    if not LINUX:
        return None
    if os.path.exists("/.dockerenv"):
        return "docker"
    if os.path.exists("/run/.containerenv"):
        return "podman"
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return "kubernetes"
    product = f"{read_text('/sys/class/dmi/id/sys_vendor') or ''} {read_text('/sys/class/dmi/id/product_name') or ''}"
    for sign, name in {**_HYPERVISORS, **_VENDORS}.items():
        if sign in product:
            return name
    flags = next((x for x in (read_text("/proc/cpuinfo") or "").splitlines() if x.startswith("flags")), "")
    return "virtual machine" if " hypervisor" in flags else None


def _compute(nvml: Any, handle: object) -> float | None:
    """Its compute capability, such as 9.0 for an H200; None if the driver is too old to say."""
    try:
        major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    except (nvml.NVMLError, AttributeError):
        return None
    return float(f"{major}.{minor}")


def _of_others() -> tuple[Accelerator, ...]:
    smi = open_amdsmi()
    if smi is None:
        found = intel_gpus()
    else:
        found = amd_gpus(smi)
        smi.amdsmi_shut_down()
    return tuple(Accelerator(index=index, **each) for index, each in enumerate(found))


def _accelerators() -> tuple[Accelerator, ...]:
    """The GPUs that CUDA_VISIBLE_DEVICES allows, numbered from 0 in its order; else those of AMD, else of Intel."""
    nvml = open_nvml()
    if nvml is None:
        return _of_others()
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
