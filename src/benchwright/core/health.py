"""Health: the state of a node at this moment. Everything is optional: None or empty if the system does not report it."""

from __future__ import annotations

import msgspec

# Processes that a killed benchwright may have left running.


class Mark(msgspec.Struct, frozen=True):
    """Identifies the processes of one agent: `token` is in their environment, `group` is their control group."""

    token: str
    group: str | None = None


class Leftovers(msgspec.Struct, frozen=True, kw_only=True):
    """Processes are given as `name (pid)`."""

    ended: tuple[str, ...] = ()
    left: tuple[str, ...] = ()  # could not be ended
    unknown: tuple[str, ...] = ()  # nodes that did not answer
    of_others: tuple[str, ...] = ()  # belong to another agent, which is gone: not ours to end


class CpuTicks(msgspec.Struct, frozen=True, kw_only=True):
    """CPU time of all cores since boot, in kernel ticks."""

    total: int
    idle: int
    stolen: int


class Pressure(msgspec.Struct, frozen=True, kw_only=True):
    """The share (%) of the last ten seconds in which some, or all, tasks had to wait."""

    some_percent: float
    full_percent: float | None = None


class ThermalZone(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    temperature_c: float
    throttles_at_c: float | None = None  # the lowest trip point that slows the machine down or turns it off


class CpuHealth(msgspec.Struct, frozen=True, kw_only=True):
    governors: dict[str, int] = {}  # governor → how many cores have it
    turbo: bool | None = None  # the clock may exceed the nominal one
    smt: bool | None = None  # two threads share a core
    load_1m: float | None = None
    busy_percent: float | None = None  # of all cores, during the check
    steal_percent: float | None = None
    pressure: Pressure | None = None
    quota_cores: float | None = None  # limit of the control group
    throttled_percent: float | None = None  # share of that quota's periods in which it ran out
    clock_source: str | None = None
    clock_limit_mhz: float | None = None  # the highest clock that is allowed
    clock_most_mhz: float | None = None  # … that the processor has
    throttle_events: int | None = None  # how often heat has slowed a core since boot


class MemoryHealth(msgspec.Struct, frozen=True, kw_only=True):
    total_bytes: int | None = None  # of the machine
    available_bytes: int | None = None  # to this process, within its control group
    limit_bytes: int | None = None  # of the control group, if below the machine's
    swap_total_bytes: int | None = None
    swap_used_bytes: int | None = None
    pressure: Pressure | None = None


class DiskHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The file system that holds, or would hold, `folder`."""

    folder: str
    free_bytes: int | None = None
    total_bytes: int | None = None
    free_files: int | None = None  # None also if the file system creates inodes on demand
    kind: str | None = None  # ext4, tmpfs, nfs…
    writable: bool | None = None
    pressure: Pressure | None = None


class GpuHealth(msgspec.Struct, frozen=True, kw_only=True):
    index: int
    name: str
    persistent: bool | None = None  # the driver stays loaded while unused
    processes: tuple[int, ...] | None = None  # pids of the programs that use it
    load_percent: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    uncorrected_errors: int | None = None  # ECC, since the driver was loaded
    temperature_c: float | None = None
    throttles_at_c: float | None = None
    throttle_reasons: tuple[str, ...] | None = None  # why its clock is limited now
    power_limit_w: float | None = None
    power_default_w: float | None = None
    link_width: int | None = None  # lanes of its PCI Express link
    link_width_most: int | None = None  # … that it and its slot could use


class Health(msgspec.Struct, frozen=True, kw_only=True):
    cpu: CpuHealth
    memory: MemoryHealth
    disk: DiskHealth
    zones: tuple[ThermalZone, ...] = ()
    on_battery: bool | None = None
    open_files_limit: int | None = None
    gpus: tuple[GpuHealth, ...] = ()
    gpu_trouble: str | None = None  # why an installed driver does not answer
