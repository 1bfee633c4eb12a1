"""Judges whether a node's state disturbs measurements, and says what to do about it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from benchwright.core.health import CpuHealth, DiskHealth, GpuHealth, Health, MemoryHealth, Pressure, ThermalZone
from benchwright.core.machine import Machine
from benchwright.core.note import Note
from benchwright.core.quantities import format_bytes

_GIB = 1 << 30
_NETWORK = tuple("nfs cifs smb 9p ceph lustre gpfs beegfs afs fuse.sshfs fuse.gluster ocfs2".split())
_SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit", "xen")
_CONTAINERS = ("docker", "podman", "kubernetes")


def judge_health(health: Health, machine: Machine) -> list[Note]:
    """One note for each thing checked, GPUs excepted; `unknown` if it could not be read."""
    cpu, memory, disk = health.cpu, health.memory, health.disk
    return named(
        {
            "cpu.governor": _governor(cpu.governors),
            "cpu.turbo": _turbo(cpu.turbo),
            "cpu.load": _load(cpu, machine.cores_total),
            "cpu.pressure": _waiting(
                cpu.pressure, "a core", (10, 60), "more runnable programs than cores: stop some, or use fewer threads"
            ),
            "cpu.steal": _steal(cpu.steal_percent),
            "cpu.quota": _quota(cpu, machine.cores_total),
            "cpu.smt": _smt(cpu.smt),
            "cpu.clock": _clock(cpu.clock_source),
            "cpu.limit": _clock_limit(cpu),
            "cpu.slowed": _slowed_cores(cpu.throttle_events),
            "cpu.virtual": _virtual(machine.virtual),
            "heat.zones": _heat(health.zones),
            "heat.power": _battery(health.on_battery),
            "memory.free": _free_memory(memory),
            "memory.swap": _swap(memory),
            "memory.pressure": _waiting(
                memory.pressure, "memory", (1, 10), "memory is short: stop what uses it, or use smaller batches"
            ),
            "disk.free": _free_disk(disk),
            "disk.kind": _file_system(disk.kind),
            "disk.pressure": _waiting(
                disk.pressure, "the disk", (10, 60), "heavy disk traffic: stop it, or keep data in memory"
            ),
            "limits.files": _open_files(health.open_files_limit),
        }
    )


def named(judged: Mapping[str, Note | None]) -> list[Note]:
    """The notes with their kinds; one that is None could not be judged."""
    unknown = Note(severity="unknown", text="not reported by the system")
    return [msgspec.structs.replace(note or unknown, kind=kind) for kind, note in judged.items()]


def ok(text: str) -> Note:
    return Note(severity="ok", text=text)


def _governor(governors: dict[str, int]) -> Note | None:
    if not governors:
        return None
    if set(governors) == {"performance"}:
        return ok("performance on every core")
    found = ", ".join(f"{name} on {_count(count, 'core')}" for name, count in governors.items())
    return Note(text=f"{found}: the clock follows the load", remedy="sudo cpupower frequency-set -g performance")


def _turbo(turbo: bool | None) -> Note | None:
    if turbo is None:
        return None
    # On nearly everywhere; the noise floor shows if it does harm here.
    on, off = (
        "on: the clock drops as more cores work or heat up",
        "off: the clock does not depend on heat or other cores",
    )
    return ok(on if turbo else off)


def _load(cpu: CpuHealth, cores: int) -> Note | None:
    if cpu.load_1m is None and cpu.busy_percent is None:
        return None
    per_core = 0.0 if cpu.load_1m is None else cpu.load_1m / cores
    busy = 100 * min(per_core, 1.0) if cpu.busy_percent is None else cpu.busy_percent
    load = "" if cpu.load_1m is None else f", load {cpu.load_1m:.1f} on {_count(cores, 'core')}"
    text = f"{busy:.0f} % busy with other work{load}"
    if busy >= 90:
        remedy = "no core is free: stop other programs (see `top`), or measure elsewhere"
        return Note(severity="error", text=text, remedy=remedy)
    if busy >= 20:
        return Note(text=text, remedy="stop other programs (see `top`), or pin to free cores with --cores")
    if per_core >= 0.5:
        return Note(text=text, remedy="it was busy a moment ago; wait a minute and check again")
    return ok(text)


def _steal(percent: float | None) -> Note | None:
    if percent is None:
        return None
    if percent < 1:
        return ok("the hypervisor takes no time away")
    return Note(
        severity="error" if percent >= 10 else "warning",
        text=f"the hypervisor gives {percent:.0f} % of the time to other machines",
        remedy="compare CPU time and interleave; for wall times use dedicated cores or a machine of your own",
    )


def _quota(cpu: CpuHealth, cores: int) -> Note:
    if cpu.quota_cores is None or cpu.quota_cores >= cores:
        return ok("no limit on CPU time")
    text = f"the control group may use {cpu.quota_cores:.3g} of {_count(cores, 'core')}"
    remedy = "use no more threads than that (OMP_NUM_THREADS), or give the container whole cores (cpuset)"
    if cpu.throttled_percent is not None and cpu.throttled_percent >= 1:
        return Note(text=f"{text}, and was throttled in {cpu.throttled_percent:.0f} % of periods", remedy=remedy)
    return Note(text=text, remedy=remedy) if cpu.quota_cores < 1 else ok(text)


def _smt(smt: bool | None) -> Note | None:
    if smt is None:
        return None
    return ok("on: two threads share a core; --cores can leave one of them free" if smt else "off")


def _clock(source: str | None) -> Note | None:
    if source is None:
        return None
    if source not in _SLOW_CLOCKS:
        return ok(f"{source}: quick to read")
    return Note(
        text=f"{source}: reading the time costs a microsecond or more",
        remedy="short steps look longer; check whether the kernel offers tsc (dmesg | grep -i tsc)",
    )


def _clock_limit(cpu: CpuHealth) -> Note | None:
    limit, most = cpu.clock_limit_mhz, cpu.clock_most_mhz
    if limit is None or most is None:
        return None
    if limit > 0.98 * most:
        return ok(f"clock up to {most:,.0f} MHz")
    text = f"the clock is limited to {limit:,.0f} of {most:,.0f} MHz"
    return Note(text=text, remedy=f"sudo cpupower frequency-set -u {most:.0f}MHz, or compare only under this limit")


def _slowed_cores(events: int | None) -> Note | None:
    if events is None:
        return None
    if not events:
        return ok("no core throttled by heat since boot")
    return Note(
        text=f"cores throttled by heat {events:,} times since boot",
        remedy="check the cooling; pause between launches; compare interleaved",
    )


def _virtual(virtual: str | None) -> Note:
    if virtual is None:
        return ok("no hypervisor or container in between")
    inside = "container" if virtual in _CONTAINERS else "virtual machine"
    return Note(
        severity="unknown",
        text=f"{virtual if virtual == inside else f'{virtual} ({inside})'}: other users of this hardware are invisible here",
        remedy="an idle-looking load proves nothing: trust the noise floor, and repeat launches",
    )


def _heat(zones: tuple[ThermalZone, ...]) -> Note | None:
    if not zones:
        return None
    # Without trip points, assume 95 °C, where processors commonly slow down.
    zone = min(zones, key=lambda z: (z.throttles_at_c or 95) - z.temperature_c)
    margin = (zone.throttles_at_c or 95) - zone.temperature_c
    limit = "" if zone.throttles_at_c is None else f", slows down at {zone.throttles_at_c:.0f} °C"
    text = f"{zone.name} {zone.temperature_c:.0f} °C{limit}"
    if margin > 15:
        return ok(text)
    severity = "error" if margin <= 3 else "warning"
    return Note(severity=severity, text=text, remedy="let it cool down; check fans and air flow")


def _battery(on_battery: bool | None) -> Note | None:
    if on_battery is None:
        return None
    return Note(text="on battery: clocks are limited", remedy="plug the machine in") if on_battery else ok("on mains")


def _free_memory(memory: MemoryHealth) -> Note | None:
    whole = memory.limit_bytes or memory.total_bytes
    if memory.available_bytes is None or not whole:
        return None
    text = f"{format_bytes(memory.available_bytes)} free of {format_bytes(whole)}"
    if memory.limit_bytes and memory.total_bytes:
        text += f" that the control group allows; the machine has {format_bytes(memory.total_bytes)}"
    remedy = "free memory, or programs will swap or be killed by the kernel"
    if memory.available_bytes < _GIB // 4:
        return Note(severity="error", text=text, remedy=remedy)
    return Note(text=text, remedy=remedy) if memory.available_bytes < 0.1 * whole else ok(text)


def _swap(memory: MemoryHealth) -> Note | None:
    if memory.swap_used_bytes is None:
        return None
    if not memory.swap_total_bytes:
        return ok("none: a program that runs out of memory is killed at once")
    text = f"{format_bytes(memory.swap_used_bytes)} of {format_bytes(memory.swap_total_bytes)} in use"
    if memory.swap_used_bytes < _GIB // 16:
        return ok(text)
    return Note(text=text, remedy="reading pages back from disk takes time: sudo swapoff -a && sudo swapon -a")


def _free_disk(disk: DiskHealth) -> Note | None:
    if disk.writable is False:
        text = f"{disk.folder} is not writable"
        return Note(severity="error", text=text, remedy="choose another folder with --base")
    if disk.free_bytes is None:
        return None
    text = f"{format_bytes(disk.free_bytes)} in {disk.folder}"
    remedy = "make room, or keep results elsewhere with --base"
    if disk.free_bytes < _GIB // 16:
        return Note(severity="error", text=text, remedy=remedy)
    if disk.free_files is not None and disk.free_files < 1000:
        return Note(text=f"{text}, but room for only {disk.free_files} more files", remedy=remedy)
    return Note(text=text, remedy=remedy) if disk.free_bytes < 2 * _GIB else ok(text)


def _file_system(kind: str | None) -> Note | None:
    if kind is None:
        return None
    if kind in ("tmpfs", "ramfs"):
        return Note(
            text=f"{kind}: results are in memory and will not survive a restart",
            remedy="keep results on a disk with --base",
        )
    if kind.startswith(_NETWORK):
        return Note(
            text=f"{kind}: results go over the network",
            remedy="keep results on a local disk with --base, or the network becomes part of the measurement",
        )
    return ok(kind)


def _open_files(limit: int | None) -> Note | None:
    if limit is None:
        return None
    text = f"a process may open {limit:,}"
    remedy = "data loaders with many workers need more: ulimit -n 4096"
    return ok(text) if limit >= 1024 else Note(text=text, remedy=remedy)


def _waiting(pressure: Pressure | None, what: str, limits: tuple[float, float], remedy: str) -> Note | None:
    """`limits`: the share (%) of time spent waiting that is worth a warning, and the share that is an error."""
    if pressure is None:
        return None
    share = pressure.some_percent
    if share < limits[0]:
        return ok(f"no task waits for {what}" if share < 1 else f"tasks wait for {what} {share:.0f} % of the time")
    severity = "error" if share >= limits[1] else "warning"
    return Note(severity=severity, text=f"tasks waited for {what} in {share:.0f} % of the last 10 s", remedy=remedy)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


# What the state of the GPUs means for measuring on them, and what to do about it.


def judge_gpus(gpus: tuple[GpuHealth, ...], trouble: str | None) -> list[Note]:
    """Notes called gpu.<index>.<what>; or one called gpu.driver if there is a driver but no GPU can be read."""
    if trouble is not None:
        remedy = "check that nvidia-smi works; a container must be started with its GPUs"
        return [Note(kind="gpu.driver", text=trouble, remedy=remedy)]
    return [
        note
        for gpu in gpus
        for note in named(
            {
                f"gpu.{gpu.index}.users": _users(gpu),
                f"gpu.{gpu.index}.clock": _gpu_clock(gpu.throttle_reasons),
                f"gpu.{gpu.index}.heat": _gpu_heat(gpu),
                f"gpu.{gpu.index}.power": _power(gpu),
                f"gpu.{gpu.index}.errors": _errors(gpu),
                f"gpu.{gpu.index}.link": _link(gpu),
                f"gpu.{gpu.index}.persistence": _persistence(gpu),
            }
        )
    ]


def _users(gpu: GpuHealth) -> Note | None:
    if gpu.processes is None and gpu.load_percent is None:
        return None
    busy = gpu.load_percent or 0.0
    if not gpu.processes and busy < 5:
        return ok("not in use")
    count = len(gpu.processes or ())
    pids = ", ".join(map(str, (gpu.processes or ())[:4]))
    who = f"{count} program{'' if count == 1 else 's'} (pid {pids}) on it" if count else "in use"
    memory = "" if gpu.memory_used_bytes is None else f", {format_bytes(gpu.memory_used_bytes)} of its memory taken"
    return Note(
        severity="error" if busy >= 20 else "warning",
        text=f"{who}, {busy:.0f} % busy{memory}",
        remedy="stop them, wait, or choose another GPU with CUDA_VISIBLE_DEVICES",
    )


def _gpu_clock(reasons: tuple[str, ...] | None) -> Note | None:
    if reasons is None:
        return None
    if not reasons:
        return ok("clock not limited")
    slowed = any("slowdown" in reason or "brake" in reason for reason in reasons)
    return Note(
        severity="error" if slowed else "warning",
        text=f"limited by {', '.join(reasons)}",
        remedy="see nvidia-smi -q -d PERFORMANCE; let it cool, raise the power cap, or reset clocks (-rgc, -rac)",
    )


def _gpu_heat(gpu: GpuHealth) -> Note | None:
    if gpu.temperature_c is None:
        return None
    limit = gpu.throttles_at_c or 90.0
    text = f"{gpu.temperature_c:.0f} °C, slows down at {limit:.0f} °C"
    return ok(text) if limit - gpu.temperature_c > 10 else Note(text=text, remedy="let it cool before measuring")


def _power(gpu: GpuHealth) -> Note | None:
    limit, default = gpu.power_limit_w, gpu.power_default_w
    if limit is None or default is None:
        return None
    if limit > default - 1:
        return ok(f"may draw {limit:.0f} W")
    return Note(
        text=f"capped at {limit:.0f} W; its default is {default:.0f} W",
        remedy=f"sudo nvidia-smi -i {gpu.index} -pl {default:.0f}, or compare only with runs under this cap",
    )


def _errors(gpu: GpuHealth) -> Note | None:
    if gpu.uncorrected_errors is None:
        return None
    if not gpu.uncorrected_errors:
        return ok("no memory errors")
    return Note(
        severity="error",
        text=f"{gpu.uncorrected_errors} uncorrected memory errors",
        remedy=f"reset it (sudo nvidia-smi -r -i {gpu.index}) or restart the machine; if they return, replace it",
    )


def _link(gpu: GpuHealth) -> Note | None:
    if gpu.link_width is None or gpu.link_width_most is None:
        return None
    if gpu.link_width >= gpu.link_width_most:
        return ok(f"{gpu.link_width} lanes")
    text = f"its link has {gpu.link_width} of {gpu.link_width_most} lanes"
    return Note(text=text, remedy="copies are slower; reseat the card, and check the slot and its riser")


def _persistence(gpu: GpuHealth) -> Note | None:
    if gpu.persistent is None:
        return None
    if gpu.persistent:
        return ok("the driver stays loaded")
    text = "the driver unloads when nobody uses the GPU: first steps are slow"
    return Note(text=text, remedy=f"sudo nvidia-smi -i {gpu.index} -pm 1")
