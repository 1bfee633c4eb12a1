"""The state of the NVIDIA GPUs, through NVML. What a GPU or driver does not report is None."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

from benchwright.agent.machine.nvml import as_text, find_handles, open_nvml, throttle_bits
from benchwright.agent.supervise.program_environment import visible_devices
from benchwright.core.node.health import GpuHealth

T = TypeVar("T")

# Bits of nvmlClocksEventReasons. That an idle GPU lowers its clock is left out.
_REASONS = {
    0x2: "application clocks setting",
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
    0x100: "display clock setting",
}


def read_gpus(nvml: Any | None = None) -> tuple[tuple[GpuHealth, ...], str | None]:
    """The GPUs that CUDA_VISIBLE_DEVICES allows, and why none could be read although there is a driver."""
    nvml = nvml or open_nvml()
    if nvml is None:
        loaded = os.path.exists("/proc/driver/nvidia/version")
        return (), "the NVIDIA driver is loaded, but its library (NVML) does not answer" if loaded else None
    try:
        handles = find_handles(nvml, visible_devices(os.environ))
        return tuple(read_gpu(nvml, index, handle) for index, handle in enumerate(handles)), None
    except nvml.NVMLError as error:
        return (), f"NVML: {error}"
    finally:
        nvml.nvmlShutdown()


def read_gpu(nvml: Any, index: int, handle: object) -> GpuHealth:
    """One GPU; a reading that fails does not affect the others."""

    def ask(question: Callable[[], T]) -> T | None:
        try:
            return question()
        except (nvml.NVMLError, AttributeError):  # an old binding lacks the function or the name
            return None

    memory = ask(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
    limit_mw = ask(lambda: nvml.nvmlDeviceGetPowerManagementLimit(handle))
    default_mw = ask(lambda: nvml.nvmlDeviceGetPowerManagementDefaultLimit(handle))
    return GpuHealth(
        index=index,
        name=ask(lambda: as_text(nvml.nvmlDeviceGetName(handle))) or "GPU",
        persistent=ask(lambda: bool(nvml.nvmlDeviceGetPersistenceMode(handle))),
        processes=ask(lambda: _processes(nvml, handle)),
        load_percent=ask(lambda: float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)),
        memory_used_bytes=None if memory is None else memory.used,
        memory_total_bytes=None if memory is None else memory.total,
        uncorrected_errors=ask(
            lambda: int(
                nvml.nvmlDeviceGetTotalEccErrors(
                    handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
                )
            )
        ),
        temperature_c=ask(lambda: float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))),
        throttles_at_c=ask(
            lambda: float(nvml.nvmlDeviceGetTemperatureThreshold(handle, nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN))
        ),
        throttle_reasons=ask(lambda: _throttle_reasons(nvml, handle)),
        power_limit_w=None if limit_mw is None else limit_mw / 1000,
        power_default_w=None if default_mw is None else default_mw / 1000,
    )


def _processes(nvml: Any, handle: Any) -> tuple[int, ...]:
    users = [*nvml.nvmlDeviceGetComputeRunningProcesses(handle), *nvml.nvmlDeviceGetGraphicsRunningProcesses(handle)]
    return tuple(sorted({user.pid for user in users}))


def _throttle_reasons(nvml: Any, handle: Any) -> tuple[str, ...]:
    bits = throttle_bits(nvml, handle)
    return tuple(name for bit, name in _REASONS.items() if bits & bit)
