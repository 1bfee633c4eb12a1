"""NVIDIA GPUs: memory, load, power, energy, clocks, temperature and throttling, through NVML."""

from __future__ import annotations

import time

from benchwright.agent.machine.nvml import find_handles, open_nvml, throttle_bits
from benchwright.agent.processes.process_tree import MARKER, read_proc
from benchwright.agent.samplers.base import SampledJob, Sampler, SamplerReading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Reader = Callable[[Any], "dict[str, float]"]


_MPS_SERVER = b"nvidia-cuda-mps"  # as far as the kernel keeps its name
_STRANGERS_EVERY_US = 1_900_000  # every fourth sample at the usual interval


class NvidiaSampler(Sampler):
    """Samples the job's GPUs. A reading that a GPU does not support is dropped."""

    name = "nvidia"
    budget = 0.01  # reading the counter of energy takes 3 ms of CPU time, and it must be read twice a second

    def __init__(self, subject: SampledJob, nvml: Any, handles: list[Any]) -> None:
        self._subject = subject
        self._nvml = nvml
        self._gpus = [(device, handle, dict(_readers(nvml))) for device, handle in enumerate(handles)]
        self._reports_processes = True
        self._strangers = _Strangers(nvml)

    def sample(self, now_ns: int) -> list[SamplerReading]:
        return [self._sample_gpu(*gpu) for gpu in self._gpus]

    def close(self) -> None:
        self._nvml.nvmlShutdown()

    def _sample_gpu(self, device: int, handle: Any, readers: dict[str, Reader]) -> SamplerReading:
        nvml = self._nvml
        values: dict[str, float] = {}
        for name, read in list(readers.items()):
            try:
                values.update(read(handle))
            except (nvml.NVMLError_NotSupported, nvml.NVMLError_FunctionNotFound, nvml.NVMLError_NoPermission):
                del readers[name]
        ours = {stat.pid for stat in self._subject.processes()}
        values.update(self._strangers.sample(device, handle, ours))
        return SamplerReading(values, device, self._sample_processes(handle))

    def _sample_processes(self, handle: Any) -> dict[int, dict[str, float]] | None:
        """GPU memory of the job's own processes, if the driver allows; other programs are not reported."""
        if not self._reports_processes:
            return None
        try:
            users = self._nvml.nvmlDeviceGetComputeRunningProcesses(handle)
        except self._nvml.NVMLError:
            self._reports_processes = False
            return None
        ours = {stat.pid for stat in self._subject.processes()}
        return {
            user.pid: {"memory_bytes": user.usedGpuMemory}
            for user in users
            if user.pid in ours and user.usedGpuMemory is not None
        } or None


class _Strangers:
    """GPU use of programs that benchwright did not start: `others_percent` of the time.

    The driver takes as long to answer as for everything else together, so it is asked less often.
    In a container the driver may report pids of another namespace; nothing is reported until one of ours is seen.
    """

    def __init__(self, nvml: Any, every_us: int = _STRANGERS_EVERY_US) -> None:
        self._nvml = nvml
        self._every_us = every_us
        self._since: dict[int, int] = {}  # device → when it was last asked, in microseconds since 1970
        self._same_numbers = False
        self._is_ours: dict[int, bool] = {}

    def sample(self, device: int, handle: Any, ours: set[int]) -> dict[str, float]:
        since, now = self._since.get(device), int(time.time() * 1e6)
        if since is not None and 0 <= now - since < self._every_us:
            return {}
        self._since[device] = now
        if since is None:
            return {}
        try:
            users = self._nvml.nvmlDeviceGetProcessUtilization(handle, since)
        except self._nvml.NVMLError:  # nobody used it, or this GPU does not report it
            return {"others_percent": 0} if self._same_numbers else {}
        self._same_numbers = self._same_numbers or any(user.pid in ours for user in users)
        if not self._same_numbers:
            return {}
        by_pid: dict[int, list[int]] = {}
        for user in users:
            if user.pid not in ours and user.timeStamp > since and not self._started_by_us(user.pid):
                by_pid.setdefault(user.pid, []).append(user.smUtil)
        return {"others_percent": min(100, sum(max(shares) for shares in by_pid.values()))}

    def _started_by_us(self, pid: int) -> bool:
        """Another job of this launch, which shares the GPU by plan; or the server of MPS, which works for its clients."""
        if pid not in self._is_ours:
            marked = f"{MARKER}=".encode() in (read_proc(f"/proc/{pid}/environ") or b"")
            self._is_ours[pid] = marked or (read_proc(f"/proc/{pid}/comm") or b"").startswith(_MPS_SERVER)
        return self._is_ours[pid]


def _readers(nvml: Any) -> dict[str, Reader]:
    def memory(handle: object) -> dict[str, float]:
        info = nvml.nvmlDeviceGetMemoryInfo(handle)
        return {"memory_bytes": info.used, "memory_total_bytes": info.total}

    return {
        "memory": memory,
        "load": lambda handle: {"load_percent": nvml.nvmlDeviceGetUtilizationRates(handle).gpu},
        "power": lambda handle: {"power_w": nvml.nvmlDeviceGetPowerUsage(handle) / 1e3},
        "power_limit": lambda handle: {"power_limit_w": nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1e3},
        "energy": lambda handle: {"energy_j": nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3},
        "sm_clock": lambda handle: {"sm_clock_mhz": nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)},
        "memory_clock": lambda handle: {"memory_clock_mhz": nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)},
        "temperature": lambda handle: {
            "temperature_c": nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)
        },
        "throttle": lambda handle: {"throttle": throttle_bits(nvml, handle)},
    }


def open_sampler(subject: SampledJob) -> Sampler | None:
    """None without an NVIDIA driver, or when the job may not see any GPU."""
    if subject.devices is not None and not subject.devices:
        return None
    nvml = open_nvml()
    if nvml is None:
        return None
    handles = find_handles(nvml, subject.devices)
    if not handles:
        nvml.nvmlShutdown()
        return None
    return NvidiaSampler(subject, nvml, handles)
