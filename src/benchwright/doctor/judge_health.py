"""What the state of a node means for measuring on it, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchwright.core.machine import Machine
from benchwright.core.node.checkup import Figure, Finding, State
from benchwright.core.node.health import CpuHealth, DiskHealth, Health, MemoryHealth, Pressure, ThermalZone
from benchwright.core.numbers.quantities import format_bytes

_GIB = 1 << 30
_NETWORK = (
    "nfs",
    "cifs",
    "smb",
    "9p",
    "ceph",
    "lustre",
    "gpfs",
    "beegfs",
    "afs",
    "fuse.sshfs",
    "fuse.gluster",
    "ocfs2",
)
_SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit", "xen")
_CONTAINERS = ("docker", "podman", "kubernetes")


def judge_health(health: Health, machine: Machine) -> list[Finding]:
    """One finding for each thing that was looked at, except for the GPUs; what could not be read is UNKNOWN."""
    return [
        *_judge_cpu(health.cpu, machine),
        _judge_heat(health.zones),
        _judge_battery(health.on_battery),
        *_judge_memory(health.memory),
        *_judge_disk(health.disk),
        _judge_open_files(health.open_files_limit),
    ]


def _judge_cpu(cpu: CpuHealth, machine: Machine) -> Iterator[Finding]:
    yield _judge_governor(cpu.governors)
    yield _judge_turbo(cpu.turbo)
    yield _judge_load(cpu, machine.cores_total)
    yield _judge_waiting(
        "cpu.pressure",
        cpu.pressure,
        "for a core",
        (10, 60),
        "more programs want to run than there are cores: stop some, or use fewer threads",
    )
    yield _judge_steal(cpu.steal_percent)
    yield _judge_quota(cpu, machine.cores_total)
    yield _judge_smt(cpu.smt)
    yield _judge_clock(cpu.clock_source)
    yield _judge_slowed_cores(cpu.throttle_events)
    yield _judge_virtual(machine.virtual)


def _judge_governor(governors: dict[str, int]) -> Finding:
    finding = _about("cpu.governor", **governors)
    if not governors:
        return finding(State.UNKNOWN)
    if set(governors) == {"performance"}:
        return finding(State.OK, "performance on every core")
    told = ", ".join(f"{name} on {count} core{'s' if count > 1 else ''}" for name, count in governors.items())
    return finding(
        State.WARNING,
        f"{told}: the clock follows the load",
        "sudo cpupower frequency-set -g performance",
    )


def _judge_turbo(turbo: bool | None) -> Finding:
    finding = _about("cpu.turbo", turbo=turbo)
    if turbo is None:
        return finding(State.UNKNOWN)
    if not turbo:
        return finding(State.OK, "off: the clock does not depend on heat or on the other cores")
    # On nearly everywhere; whether it does harm here is what the noise floor tells.
    return finding(State.OK, "on: the clock falls as more cores work or get hot")


def _judge_load(cpu: CpuHealth, cores: int) -> Finding:
    finding = _about("cpu.load", load_1m=cpu.load_1m, busy_percent=_rounded(cpu.busy_percent), cores=cores)
    if cpu.load_1m is None and cpu.busy_percent is None:
        return finding(State.UNKNOWN)
    per_core = 0.0 if cpu.load_1m is None else cpu.load_1m / cores
    busy = 100 * min(per_core, 1.0) if cpu.busy_percent is None else cpu.busy_percent
    load = "" if cpu.load_1m is None else f", load {cpu.load_1m:.1f} on {_count(cores, 'core')}"
    text = f"{busy:.0f} % busy with other things{load}"
    if busy >= 90:
        return finding(State.BAD, text, "no core is free: stop what runs (see `top`), or measure elsewhere")
    if busy >= 20:
        return finding(
            State.WARNING, text, "stop what else runs (see `top`), or pin with --cores to cores that are free"
        )
    if per_core >= 0.5:
        return finding(State.WARNING, text, "it was busy a moment ago; wait a minute and look again")
    return finding(State.OK, text)


def _judge_steal(percent: float | None) -> Finding:
    finding = _about("cpu.steal", steal_percent=_rounded(percent))
    if percent is None:
        return finding(State.UNKNOWN)
    if percent < 1:
        return finding(State.OK, "the hypervisor takes no time away")
    return finding(
        State.BAD if percent >= 10 else State.WARNING,
        f"the hypervisor gives {percent:.0f} % of the time to other machines",
        "compare CPU time and interleave; for wall times use a machine, or dedicated cores, of your own",
    )


def _judge_quota(cpu: CpuHealth, cores: int) -> Finding:
    finding = _about("cpu.quota", quota_cores=cpu.quota_cores, throttled_percent=_rounded(cpu.throttled_percent))
    if cpu.quota_cores is None or cpu.quota_cores >= cores:
        return finding(State.OK, "no limit on CPU time")
    text = f"the control group may use {cpu.quota_cores:.3g} of {_count(cores, 'core')}"
    remedy = "use no more threads than that (OMP_NUM_THREADS), or give the container whole cores (cpuset)"
    if cpu.throttled_percent is not None and cpu.throttled_percent >= 1:
        return finding(State.WARNING, f"{text}, and was stopped in {cpu.throttled_percent:.0f} % of periods", remedy)
    return finding(State.WARNING if cpu.quota_cores < 1 else State.OK, text, remedy)


def _judge_smt(smt: bool | None) -> Finding:
    finding = _about("cpu.smt", smt=smt)
    if smt is None:
        return finding(State.UNKNOWN)
    return finding(State.OK, "on: two threads share a core; --cores can leave one of them free" if smt else "off")


def _judge_clock(source: str | None) -> Finding:
    finding = _about("cpu.clock", source=source)
    if source is None:
        return finding(State.UNKNOWN)
    if source not in _SLOW_CLOCKS:
        return finding(State.OK, f"{source}: quick to read")
    return finding(
        State.WARNING,
        f"{source}: reading the time costs a microsecond or more",
        "short steps look longer; see whether the kernel offers tsc (dmesg | grep -i tsc)",
    )


def _judge_slowed_cores(events: int | None) -> Finding:
    finding = _about("cpu.slowed", throttle_events=events)
    if events is None:
        return finding(State.UNKNOWN)
    if not events:
        return finding(State.OK, "heat has slowed no core since the machine started")
    return finding(
        State.WARNING,
        f"heat slowed cores {events:,} times since the machine started",
        "look at the cooling; pause between launches; compare interleaved",
    )


def _judge_virtual(virtual: str | None) -> Finding:
    finding = _about("cpu.virtual", virtual=virtual)
    if virtual is None:
        return finding(State.OK, "no hypervisor or container in between")
    inside = "container" if virtual in _CONTAINERS else "virtual machine"
    article = virtual if virtual == inside else f"{virtual} ({inside})"
    return finding(
        State.UNKNOWN,
        f"{article}: who else uses this hardware cannot be seen from inside",
        "an idle-looking load proves nothing here: believe the noise floor, and repeat launches",
    )


def _judge_heat(zones: tuple[ThermalZone, ...]) -> Finding:
    finding = _about("heat.zones", **{zone.name: round(zone.temperature_c, 1) for zone in zones})
    if not zones:
        return finding(State.UNKNOWN)
    # Without trip points 95 °C stands in: where processors commonly slow down.
    zone = min(zones, key=lambda z: (z.throttles_at_c or 95) - z.temperature_c)
    margin = (zone.throttles_at_c or 95) - zone.temperature_c
    limit = "" if zone.throttles_at_c is None else f", slows down at {zone.throttles_at_c:.0f} °C"
    text = f"{zone.name} {zone.temperature_c:.0f} °C{limit}"
    if margin > 15:
        return finding(State.OK, text)
    return finding(State.BAD if margin <= 3 else State.WARNING, text, "let it cool down; look at fans and air flow")


def _judge_battery(on_battery: bool | None) -> Finding:
    finding = _about("heat.power", on_battery=on_battery)
    if on_battery is None:
        return finding(State.UNKNOWN)
    if on_battery:
        return finding(State.WARNING, "on battery: clocks are limited", "plug the machine in")
    return finding(State.OK, "on mains")


def _judge_memory(memory: MemoryHealth) -> Iterator[Finding]:
    yield _judge_free_memory(memory)
    yield _judge_swap(memory)
    yield _judge_waiting(
        "memory.pressure",
        memory.pressure,
        "for memory",
        (1, 10),
        "memory is short: stop what uses it, or use smaller batches",
    )


def _judge_free_memory(memory: MemoryHealth) -> Finding:
    whole = memory.limit_bytes or memory.total_bytes
    finding = _about(
        "memory.free",
        available_bytes=memory.available_bytes,
        total_bytes=memory.total_bytes,
        limit_bytes=memory.limit_bytes,
    )
    if memory.available_bytes is None or not whole:
        return finding(State.UNKNOWN)
    text = f"{format_bytes(memory.available_bytes)} free of {format_bytes(whole)}"
    if memory.limit_bytes and memory.total_bytes:
        text += f" that the control group allows; the machine has {format_bytes(memory.total_bytes)}"
    remedy = "free memory, or programs are slowed by swapping or ended by the kernel"
    if memory.available_bytes < _GIB // 4:
        return finding(State.BAD, text, remedy)
    return finding(State.WARNING if memory.available_bytes < 0.1 * whole else State.OK, text, remedy)


def _judge_swap(memory: MemoryHealth) -> Finding:
    used = memory.swap_used_bytes
    finding = _about("memory.swap", used_bytes=used, total_bytes=memory.swap_total_bytes)
    if used is None:
        return finding(State.UNKNOWN)
    if not memory.swap_total_bytes:
        return finding(State.OK, "none: memory that runs out ends a program at once")
    if used < _GIB // 16:
        return finding(State.OK, f"{format_bytes(used)} used of {format_bytes(memory.swap_total_bytes)}")
    return finding(
        State.WARNING,
        f"{format_bytes(used)} of {format_bytes(memory.swap_total_bytes)} in use",
        "pages that come back from disk take time: sudo swapoff -a && sudo swapon -a",
    )


def _judge_disk(disk: DiskHealth) -> Iterator[Finding]:
    yield _judge_free_disk(disk)
    yield _judge_file_system(disk.kind)
    yield _judge_waiting(
        "disk.pressure",
        disk.pressure,
        "for the disk",
        (10, 60),
        "something reads or writes much: stop it, or keep data in memory",
    )


def _judge_free_disk(disk: DiskHealth) -> Finding:
    finding = _about("disk.free", folder=disk.folder, free_bytes=disk.free_bytes, free_files=disk.free_files)
    if disk.writable is False:
        return finding(State.BAD, f"{disk.folder} cannot be written", "choose another folder with --base")
    if disk.free_bytes is None:
        return finding(State.UNKNOWN)
    text = f"{format_bytes(disk.free_bytes)} in {disk.folder}"
    remedy = "make room, or keep results elsewhere with --base"
    if disk.free_bytes < _GIB // 16:
        return finding(State.BAD, text, remedy)
    if disk.free_files is not None and disk.free_files < 1000:
        return finding(State.WARNING, f"{text}, but only {disk.free_files} more files can be made", remedy)
    return finding(State.WARNING if disk.free_bytes < 2 * _GIB else State.OK, text, remedy)


def _judge_file_system(kind: str | None) -> Finding:
    finding = _about("disk.kind", kind=kind)
    if kind is None:
        return finding(State.UNKNOWN)
    if kind in ("tmpfs", "ramfs"):
        return finding(
            State.WARNING,
            f"{kind}: results are kept in memory and are gone after a restart",
            "keep results on a disk with --base",
        )
    if kind.startswith(_NETWORK):
        return finding(
            State.WARNING,
            f"{kind}: results go over the network",
            "keep results on a local disk with --base, or the network becomes part of the measurement",
        )
    return finding(State.OK, kind)


def _judge_open_files(limit: int | None) -> Finding:
    finding = _about("limits.files", open_files_limit=limit)
    if limit is None:
        return finding(State.UNKNOWN)
    text = f"a process may open {limit:,}"
    return finding(
        State.OK if limit >= 1024 else State.WARNING, text, "data loaders with many workers need more: ulimit -n 4096"
    )


def _judge_waiting(
    name: str, pressure: Pressure | None, what: str, limits: tuple[float, float], advice: str
) -> Finding:
    """`limits`: from which share (%) on it is worth a warning, and from which it is bad."""
    share = None if pressure is None else pressure.some_percent
    full = None if pressure is None else pressure.full_percent
    finding = _about(name, some_percent=share, full_percent=full)
    if share is None:
        return finding(State.UNKNOWN)
    if share < limits[0]:
        return finding(
            State.OK, f"nobody waits {what}" if share < 1 else f"tasks wait {what} {share:.0f} % of the time"
        )
    state = State.BAD if share >= limits[1] else State.WARNING
    return finding(state, f"in {share:.0f} % of the last 10 s something had to wait {what}", advice)


def _about(name: str, **figures: Figure) -> Callable[..., Finding]:
    """Makes findings about one thing. Advice is kept where something is to be done."""

    def finding(state: State, text: str = "not reported by the system", advice: str | None = None) -> Finding:
        kept = None if state is State.OK else advice
        return Finding(name=name, state=state, text=text, advice=kept, figures=figures)

    return finding


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
