"""The state of this node, from /proc and /sys. What cannot be read is None; nothing raises.

`root` is the folder in which `proc` and `sys` are looked for: "/" on a real machine.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec

from benchwright.agent.machine.control_group import read_cpu_quota, read_memory_limits, read_throttled_percent
from benchwright.agent.machine.nvml import as_text, find_handles, open_nvml, throttle_bits
from benchwright.agent.processes.kernel import list_folder, read_number, read_text
from benchwright.agent.samplers.machine import read_ticks
from benchwright.agent.supervise.program_environment import visible_devices
from benchwright.core.health import (
    CpuHealth,
    CpuTicks,
    DiskHealth,
    GpuHealth,
    Health,
    MemoryHealth,
    Pressure,
    ThermalZone,
)

# The state of the NVIDIA GPUs, through NVML. What a GPU or driver does not report is None.


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
        link_width=ask(lambda: int(nvml.nvmlDeviceGetCurrPcieLinkWidth(handle))),
        link_width_most=ask(lambda: int(nvml.nvmlDeviceGetMaxPcieLinkWidth(handle))),
    )


def _processes(nvml: Any, handle: Any) -> tuple[int, ...]:
    users = [*nvml.nvmlDeviceGetComputeRunningProcesses(handle), *nvml.nvmlDeviceGetGraphicsRunningProcesses(handle)]
    return tuple(sorted({user.pid for user in users}))


def _throttle_reasons(nvml: Any, handle: Any) -> tuple[str, ...]:
    bits = throttle_bits(nvml, handle)
    return tuple(name for bit, name in _REASONS.items() if bits & bit)


_CPUS = "sys/devices/system/cpu"
_CLOCK_SOURCE = "sys/devices/system/clocksource/clocksource0/current_clocksource"


def read_health(
    folder: str, *, root: str = "/", watch_s: float = 0.5, sleep: Callable[[float], None] = time.sleep
) -> Health:
    """Everything; results are kept in `folder`. Watches the cores for `watch_s`."""
    before = _ticks(root)
    sleep(watch_s)
    after = _ticks(root)
    gpus, gpu_trouble = read_gpus()
    return Health(
        cpu=read_cpu(root, before, after),
        memory=read_memory(root),
        disk=read_disk(folder, root),
        zones=read_zones(root),
        on_battery=read_on_battery(root),
        open_files_limit=read_open_files_limit(root),
        gpus=gpus,
        gpu_trouble=gpu_trouble,
    )


def health_body(folder: str) -> dict[str, Any]:
    """The same, to be sent."""
    body: dict[str, Any] = msgspec.to_builtins(read_health(folder))
    return body


def read_cpu(root: str, before: CpuTicks | None = None, after: CpuTicks | None = None) -> CpuHealth:
    """The cores; how busy they were between `before` and `after`."""
    governors: dict[str, int] = {}
    for core in _cores(root):
        governor = read_text(core + "/cpufreq/scaling_governor")
        if governor:
            governors[governor] = governors.get(governor, 0) + 1
    load = (read_text(_at(root, "proc/loadavg")) or "").split()
    return CpuHealth(
        governors=governors,
        turbo=_read_turbo(root),
        smt=_read_smt(root),
        load_1m=_float(load[0]) if load else None,
        busy_percent=_share(before, after, lambda t: t.total - t.idle),
        steal_percent=_share(before, after, lambda t: t.stolen),
        pressure=read_pressure(root, "cpu"),
        quota_cores=read_cpu_quota(root),
        throttled_percent=read_throttled_percent(root),
        clock_source=read_text(_at(root, _CLOCK_SOURCE)),
        clock_limit_mhz=_read_clock_mhz(root, "scaling_max_freq"),
        clock_most_mhz=_read_clock_mhz(root, "cpuinfo_max_freq"),
        throttle_events=_read_throttle_events(root),
    )


def _ticks(root: str) -> CpuTicks | None:
    ticks = read_ticks(_at(root, "proc/stat"))
    return None if ticks is None else CpuTicks(total=ticks[0], idle=ticks[1], stolen=ticks[2])


def _share(before: CpuTicks | None, after: CpuTicks | None, part: Callable[[CpuTicks], int]) -> float | None:
    if before is None or after is None or after.total <= before.total:
        return None
    return max(0.0, 100 * (part(after) - part(before)) / (after.total - before.total))


def _cores(root: str) -> Iterator[str]:
    folder = _at(root, _CPUS)
    return (f"{folder}/{name}" for name in list_folder(folder) if re.fullmatch(r"cpu\d+", name))


def _read_turbo(root: str) -> bool | None:
    no_turbo = read_number(_at(root, _CPUS, "intel_pstate/no_turbo"))
    if no_turbo is not None:
        return not no_turbo
    boost = read_number(_at(root, _CPUS, "cpufreq/boost"))
    return None if boost is None else bool(boost)


def _read_smt(root: str) -> bool | None:
    active = read_number(_at(root, _CPUS, "smt/active"))
    if active is not None:
        return bool(active)
    siblings = list(filter(None, (read_text(core + "/topology/thread_siblings_list") for core in _cores(root))))
    return any("," in text or "-" in text for text in siblings) if siblings else None


def _read_clock_mhz(root: str, name: str) -> float | None:
    """Of the fastest core."""
    found = [khz for core in _cores(root) if (khz := read_number(f"{core}/cpufreq/{name}")) is not None]
    return max(found) / 1000 if found else None


def _read_throttle_events(root: str) -> int | None:
    counts = [read_number(core + "/thermal_throttle/core_throttle_count") for core in _cores(root)]
    found = [count for count in counts if count is not None]
    return sum(found) if found else None


def read_memory(root: str) -> MemoryHealth:
    """The machine's memory, and what this process's control group leaves of it."""
    bytes_of: dict[str, int] = {}
    for line in (read_text(_at(root, "proc/meminfo")) or "").splitlines():
        name, _, value = line.partition(":")
        words = value.split()
        if words and words[0].isdigit():
            bytes_of[name] = int(words[0]) * (1024 if words[1:] == ["kB"] else 1)
    total, available = bytes_of.get("MemTotal"), bytes_of.get("MemAvailable")
    limit = min(read_memory_limits(root), key=lambda x: x.limit_bytes - x.used_bytes, default=None)
    if limit is not None and (total is None or limit.limit_bytes < total):
        rest = max(0, limit.limit_bytes - limit.used_bytes)
        available = rest if available is None else min(available, rest)
    else:
        limit = None
    swap_total, swap_free = bytes_of.get("SwapTotal"), bytes_of.get("SwapFree")
    return MemoryHealth(
        total_bytes=total,
        available_bytes=available,
        limit_bytes=None if limit is None else limit.limit_bytes,
        swap_total_bytes=swap_total,
        swap_used_bytes=None if swap_total is None or swap_free is None else swap_total - swap_free,
        pressure=read_pressure(root, "memory"),
    )


def read_disk(folder: str, root: str = "/") -> DiskHealth:
    """Of `folder`, or of the nearest above it that exists."""
    place = os.path.abspath(folder)
    while not os.path.exists(place) and os.path.dirname(place) != place:
        place = os.path.dirname(place)
    try:
        status = os.statvfs(place)
    except OSError:
        return DiskHealth(folder=folder)
    return DiskHealth(
        folder=folder,
        free_bytes=status.f_bavail * status.f_frsize,
        total_bytes=status.f_blocks * status.f_frsize,
        free_files=status.f_favail if status.f_files else None,
        kind=read_file_system_kind(os.path.realpath(place), root),
        writable=os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK),
        pressure=read_pressure(root, "io"),
    )


def read_file_system_kind(path: str, root: str = "/") -> str | None:
    """The file system at the deepest mount point above `path`; of several there, the last one mounted."""
    best, kind = "", None
    for line in (read_text(_at(root, "proc/self/mountinfo")) or "").splitlines():
        before, found, after = line.partition(" - ")
        words = before.split()
        if not found or len(words) < 5 or not after.split():
            continue
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), words[4])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, after.split()[0]
    return kind


def read_zones(root: str) -> tuple[ThermalZone, ...]:
    """The thermal zones with a plausible temperature."""
    folder = _at(root, "sys/class/thermal")
    zones = []
    for name in list_folder(folder):
        zone = f"{folder}/{name}"
        millidegrees = read_number(zone + "/temp") if name.startswith("thermal_zone") else None
        if millidegrees is None or not 0 < millidegrees < 200_000:  # a sensor that is off reads 0 or less
            continue
        kind = read_text(zone + "/type") or name
        zones.append(
            ThermalZone(name=kind, temperature_c=millidegrees / 1000, throttles_at_c=_read_lowest_trip_c(zone))
        )
    return tuple(zones)


def _read_lowest_trip_c(zone: str) -> float | None:
    trips = []
    for name in list_folder(zone):
        match = re.fullmatch(r"trip_point_(\d+)_type", name)
        if match and read_text(f"{zone}/{name}") in ("passive", "hot", "critical"):
            at = read_number(f"{zone}/trip_point_{match[1]}_temp")
            if at is not None and at > 0:
                trips.append(at / 1000)
    return min(trips, default=None)


def read_on_battery(root: str) -> bool | None:
    """None if there is neither a battery nor a mains supply."""
    folder = _at(root, "sys/class/power_supply")
    online = [
        read_number(f"{folder}/{name}/online")
        for name in list_folder(folder)
        if read_text(f"{folder}/{name}/type") == "Mains"
    ]
    found = [value for value in online if value is not None]
    return not any(found) if found else None


def read_pressure(root: str, what: str) -> Pressure | None:
    """`what`: cpu, memory or io."""
    shares: dict[str, float] = {}
    for line in (read_text(_at(root, "proc/pressure", what)) or "").splitlines():
        match = re.match(r"(some|full) avg10=([\d.]+)", line)
        share = _float(match[2]) if match else None
        if match and share is not None:
            shares[match[1]] = share
    return Pressure(some_percent=shares["some"], full_percent=shares.get("full")) if "some" in shares else None


def read_open_files_limit(root: str) -> int | None:
    """How many files a process may open: the soft limit."""
    match = re.search(r"^Max open files\s+(\d+)", read_text(_at(root, "proc/self/limits")) or "", re.MULTILINE)
    return int(match[1]) if match else None


def _at(root: str, *parts: str) -> str:
    return os.path.join(root, *parts)


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
