"""Drivers of AMD and Intel that answer as theirs do: amdsmi 7.0.2's functions and keys, the kernel's files of xe and i915.

The shapes of the answers are those of the real library and kernel; the numbers are made up, since no such GPU was at hand.
"""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path
from typing import Any


class AmdSmiException(Exception):
    """As amdsmi's."""


class ReplayedAmdSmi:
    AmdSmiException = AmdSmiException
    AmdSmiClkType = IntEnum("AmdSmiClkType", {"SYS": 0, "GFX": 1, "MEM": 4})
    AmdSmiTemperatureType = IntEnum("AmdSmiTemperatureType", {"EDGE": 0, "HOTSPOT": 1})
    AmdSmiTemperatureMetric = IntEnum("AmdSmiTemperatureMetric", {"CURRENT": 0})
    UUIDS = ("58ff74a1-0000-1000-80cd-8a1b7c2d3e4f", "72ff74a1-0000-1000-8091-5d6e7f809102")

    def __init__(self, gpus: int = 2, lacks: tuple[str, ...] = ()) -> None:
        self._gpus, self._lacks, self.open = gpus, lacks, True

    def _needs(self, what: str) -> None:
        if what in self._lacks:
            raise AmdSmiException("AMDSMI_STATUS_NOT_SUPPORTED")

    def amdsmi_shut_down(self) -> None:
        self.open = False

    def amdsmi_get_processor_handles(self) -> list[int]:
        return list(range(self._gpus))

    def amdsmi_get_gpu_device_uuid(self, handle: int) -> str:
        return self.UUIDS[handle]

    def amdsmi_get_gpu_asic_info(self, handle: int) -> dict[str, Any]:
        return {"market_name": "AMD Instinct MI300X", "vendor_id": 0x1002, "num_compute_units": 304}

    def amdsmi_get_gpu_driver_info(self, handle: int) -> dict[str, str]:
        return {"driver_name": "amdgpu", "driver_version": "6.12.12", "driver_date": "2015/01/01 00:00"}

    def amdsmi_get_gpu_vram_usage(self, handle: int) -> dict[str, int]:
        return {"vram_total": 196_592, "vram_used": 283 + handle}

    def amdsmi_get_gpu_activity(self, handle: int) -> dict[str, Any]:
        return {"gfx_activity": 97, "umc_activity": 40, "mm_activity": "N/A"}

    def amdsmi_get_power_info(self, handle: int) -> dict[str, Any]:
        self._needs("power")
        return {
            "socket_power": 142,
            "current_socket_power": 142,
            "average_socket_power": "N/A",
            "power_limit": 750_000_000,
        }

    def amdsmi_get_energy_count(self, handle: int) -> dict[str, Any]:
        return {"energy_accumulator": 1_000_000, "counter_resolution": 15.259, "timestamp": 1}

    def amdsmi_get_clock_info(self, handle: int, kind: int) -> dict[str, Any]:
        return {"clk": 2100 if kind == 1 else 1300, "min_clk": 132, "max_clk": 2100, "clk_locked": False}

    def amdsmi_get_temp_metric(self, handle: int, sensor: int, metric: int) -> int:
        return 41


def intel_files(folder: Path) -> str:
    """A processor's own graphics without counters, a GPU of driver xe, one of i915; as /sys/class/drm has them."""
    for name, driver, clock in (
        ("card0", "", ""),
        ("card1", "xe", "device/tile0/gt0/freq0/act_freq"),
        ("card2", "i915", "gt_act_freq_mhz"),
    ):
        device = folder / name / "device"
        device.mkdir(parents=True)
        (device / "vendor").write_text("0x8086\n")
        (device / "device").write_text("0x0bd5\n")
        if driver:
            sensors = device / "hwmon" / "hwmon5"
            sensors.mkdir(parents=True)
            (sensors / "name").write_text(f"{driver}\n")
            (sensors / "energy1_input").write_text("3500000000\n")
            (sensors / "temp2_input").write_text("38000\n")
            (folder / name / clock).parent.mkdir(parents=True, exist_ok=True)
            (folder / name / clock).write_text("1600\n")
    (folder / "card1-DP-1").mkdir()
    (folder / "renderD128").mkdir()
    return str(folder)
