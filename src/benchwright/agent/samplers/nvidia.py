"""NVIDIA GPUs: memory, load, power, energy, clocks, temperature and throttling, through NVML."""

from __future__ import annotations

from benchwright.agent.nvml import find_handles, open_nvml
from benchwright.agent.samplers.base import Sample, Sampler, Subject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Reader = Callable[[Any], "dict[str, float]"]


class NvidiaSampler(Sampler):
    """Samples the job's GPUs. What a GPU does not support is left out from then on."""

    name = "nvidia"
    budget = 0.004

    def __init__(self, subject: Subject, nvml: Any, handles: list[Any]) -> None:
        self._subject = subject
        self._nvml = nvml
        self._gpus = [(device, handle, dict(_readers(nvml))) for device, handle in enumerate(handles)]
        self._tells_processes = True

    def sample(self, now_ns: int) -> list[Sample]:
        return [self._sample_gpu(*gpu) for gpu in self._gpus]

    def close(self) -> None:
        self._nvml.nvmlShutdown()

    def _sample_gpu(self, device: int, handle: Any, readers: dict[str, Reader]) -> Sample:
        values: dict[str, float] = {}
        for name, read in list(readers.items()):
            try:
                values.update(read(handle))
            except (self._nvml.NVMLError_NotSupported, self._nvml.NVMLError_FunctionNotFound):
                del readers[name]
            except self._nvml.NVMLError_NoPermission:
                del readers[name]
        return Sample(values, device, self._sample_processes(handle))

    def _sample_processes(self, handle: Any) -> dict[int, dict[str, float]] | None:
        """GPU memory of the job's own processes, where the driver allows; others on the GPU are not ours to tell."""
        if not self._tells_processes:
            return None
        try:
            users = self._nvml.nvmlDeviceGetComputeRunningProcesses(handle)
        except self._nvml.NVMLError:
            self._tells_processes = False
            return None
        ours = {stat.pid for stat in self._subject.processes()}
        return {
            user.pid: {"memory_bytes": user.usedGpuMemory}
            for user in users
            if user.pid in ours and user.usedGpuMemory is not None
        } or None


def _readers(nvml: Any) -> dict[str, Reader]:
    def memory(handle: Any) -> dict[str, float]:
        info = nvml.nvmlDeviceGetMemoryInfo(handle)
        return {"memory_bytes": info.used, "memory_total_bytes": info.total}

    # The driver renamed throttle reasons to event reasons; old bindings only have the old name.
    reasons = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
    reasons = reasons or nvml.nvmlDeviceGetCurrentClocksThrottleReasons
    return {
        "memory": memory,
        "load": lambda handle: {"load_percent": nvml.nvmlDeviceGetUtilizationRates(handle).gpu},
        "power": lambda handle: {"power_w": nvml.nvmlDeviceGetPowerUsage(handle) / 1e3},
        "energy": lambda handle: {"energy_j": nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3},
        "sm_clock": lambda handle: {"sm_clock_mhz": nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)},
        "memory_clock": lambda handle: {"memory_clock_mhz": nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)},
        "temperature": lambda handle: {
            "temperature_c": nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)
        },
        "throttle": lambda handle: {"throttle": reasons(handle)},
    }


def open_sampler(subject: Subject) -> Sampler | None:
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
