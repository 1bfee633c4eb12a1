"""AMD's GPUs: memory, load, power, energy, clocks and temperature, through amdsmi."""

from __future__ import annotations

from benchwright.agent.machine.other_gpus import amd_handles, open_amdsmi
from benchwright.agent.samplers.base import SampledJob, Sampler, SamplerReading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Reader = Callable[[Any], "dict[str, object]"]

_MB = 1 << 20  # amdsmi counts memory in these


class AmdSampler(Sampler):
    """Samples the job's GPUs. A reading that a GPU does not support is dropped."""

    name = "amd"
    budget = 0.01

    def __init__(self, smi: Any, handles: list[Any]) -> None:
        self._smi = smi
        self._gpus = [(device, handle, dict(_amd_readers(smi))) for device, handle in enumerate(handles)]

    def sample(self, now_ns: int) -> list[SamplerReading]:
        return [self._sample_gpu(*gpu) for gpu in self._gpus]

    def close(self) -> None:
        self._smi.amdsmi_shut_down()

    def _sample_gpu(self, device: int, handle: Any, readers: dict[str, Reader]) -> SamplerReading:
        values: dict[str, float] = {}
        for name, read in list(readers.items()):
            try:
                found = read(handle)
            except self._smi.AmdSmiException:
                del readers[name]
                continue
            # What a GPU does not know is a text, "N/A".
            values.update({key: float(v) for key, v in found.items() if isinstance(v, int | float) and v >= 0})
        return SamplerReading(values, device)


def _amd_readers(smi: Any) -> dict[str, Reader]:
    def memory(handle: object) -> dict[str, object]:
        found = smi.amdsmi_get_gpu_vram_usage(handle)
        return {"memory_bytes": found["vram_used"] * _MB, "memory_total_bytes": found["vram_total"] * _MB}

    def power(handle: object) -> dict[str, object]:
        found = smi.amdsmi_get_power_info(handle)
        known = (found.get(key) for key in ("current_socket_power", "socket_power", "average_socket_power"))
        return {"power_w": next((watts for watts in known if isinstance(watts, int | float)), None)}

    def energy(handle: object) -> dict[str, object]:
        found = smi.amdsmi_get_energy_count(handle)
        count = found.get("energy_accumulator", found.get("power"))  # as older versions call it
        return {"energy_j": count * found["counter_resolution"] / 1e6}

    clocks = smi.AmdSmiClkType
    hottest, present = smi.AmdSmiTemperatureType.HOTSPOT, smi.AmdSmiTemperatureMetric.CURRENT
    return {
        "memory": memory,
        "load": lambda handle: {"load_percent": smi.amdsmi_get_gpu_activity(handle)["gfx_activity"]},
        "power": power,
        "energy": energy,
        "clock": lambda handle: {"sm_clock_mhz": smi.amdsmi_get_clock_info(handle, clocks.GFX)["clk"]},
        "memory_clock": lambda handle: {"memory_clock_mhz": smi.amdsmi_get_clock_info(handle, clocks.MEM)["clk"]},
        "temperature": lambda handle: {"temperature_c": smi.amdsmi_get_temp_metric(handle, hottest, present)},
    }


def open_sampler(subject: SampledJob) -> Sampler | None:
    """None without an AMD GPU, or when the job may not see any."""
    if subject.devices is not None and not subject.devices:
        return None
    smi = open_amdsmi()
    if smi is None:
        return None
    handles = amd_handles(smi, subject.devices)
    if not handles:
        smi.amdsmi_shut_down()
        return None
    return AmdSampler(smi, handles)
