"""Facts about the machine that placeholders and conditions may use, as corrected by the system file."""

from __future__ import annotations

from typing import Any

import msgspec

from benchwright.core.machine import Machine
from benchwright.core.system import Node, System
from benchwright.kinds.suite.plan.system_options import check_options, switch, whole_number

_SAME_NAME = ("cpu", "cuda", "xpu", "hpu", "mps", "xla", "ipu", "mtia")  # arch and torch's device are one word
_CCL = {"cuda": "nccl", "rocm": "rccl", "hpu": "hccl", "xpu": "ccl"}
_COUNTED = ("cuda", "cpu")  # their number is known: the driver reports CUDA's, and a CPU has none
_SIZES = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SSH_PORT = 22  # what scripts see where the system file names none
_THIS_MACHINE = Node(name="localhost", ip="127.0.0.1", main=True)
_FEWEST_WORKERS, _MOST_WORKERS = 2, 16


class MachineFacts(msgspec.Struct, frozen=True):
    """`devices` are those to plan with; they are `emulated` where the system names more than the machine has.

    Of other makers' devices the machine cannot be asked: they are `unseen`, and there as far as the system says so.
    """

    arch: str
    devices: tuple[int, ...]
    real_devices: tuple[int, ...]
    capacity_bytes: int | None  # of one device
    nodes: tuple[Node, ...]  # the main one first; empty: only this machine
    auto_workers: bool  # `auto(x, default)` gives x
    names: dict[str, Any]

    @property
    def emulated(self) -> bool:
        return self.arch in _COUNTED and len(self.devices) > len(self.real_devices)

    @property
    def unseen(self) -> bool:
        return self.arch not in _COUNTED and len(self.devices) > len(self.real_devices)

    @property
    def machine_count(self) -> int:
        return max(1, len(self.nodes))


def machine_facts(machine: Machine, system: System) -> MachineFacts:
    """InvalidInput if the system's options are wrong."""
    check_options(system)
    arch = system.arch or _arch_of(machine)
    real = tuple(a.index for a in machine.accelerators) if arch != "cpu" else ()
    devices = real if system.gpu_count is None else _counted(real, system.gpu_count)
    known = [a.memory_bytes for a in machine.accelerators if a.memory_bytes is not None]
    capacity = system.gpu_capacity_bytes or (min(known) if known else None)
    nodes = tuple(sorted(system.nodes, key=lambda node: node is not system.main_node))
    return MachineFacts(
        arch=arch,
        devices=devices,
        real_devices=real,
        capacity_bytes=capacity,
        nodes=nodes,
        auto_workers=switch(system, "cpu", "auto") or switch(system, "cpu", "enabled"),
        names=_names(machine, system, arch, devices, capacity, nodes),
    )


def _arch_of(machine: Machine) -> str:
    names = [a.name for a in machine.accelerators]
    if not names:
        return "cpu"
    return {"AMD": "rocm", "Intel": "xpu"}.get(names[0].partition(" ")[0], "cuda")


def _counted(real: tuple[int, ...], count: int) -> tuple[int, ...]:
    return real[:count] if count <= len(real) else tuple(range(count))


def _names(
    machine: Machine,
    system: System,
    arch: str,
    devices: tuple[int, ...],
    capacity: int | None,
    nodes: tuple[Node, ...],
) -> dict[str, object]:
    cpu_count = _cpu_count(machine, system)
    cpu_per_gpu = cpu_count // max(len(devices), 1)
    name = machine.accelerators[0].name if machine.accelerators else ""
    compute = min((a.compute for a in machine.accelerators if a.compute is not None), default=0.0)
    gpu = {"count": len(devices), "capacity": capacity or 0, "name": name, "arch": arch, "compute": compute}
    described = [_described(node) for node in nodes or (_THIS_MACHINE,)]
    of_system = {"arch": arch, "gpu": gpu, "nodes": described, "options": system.options, "dirs": system.dirs}
    if system.container is not None:
        of_system["docker"] = {"image": system.container.image, "base": system.container.base or ""}
    return {
        "cpu_count": cpu_count,
        "gpu_count": len(devices),
        "cpu_per_gpu": cpu_per_gpu,
        "n_worker": _workers(system, cpu_per_gpu),
        "arch": arch,
        "device_name": "cuda" if arch == "rocm" else arch if arch in _SAME_NAME else "cpu",
        "ccl": _CCL.get(arch, "gloo"),
        "gpu": gpu,
        "cpu": {"count": cpu_count, "name": machine.cpu},
        "memory": {"capacity": machine.memory_bytes},
        "nodes": described,
        "system": of_system,
        **_SIZES,
    }


def _described(node: Node) -> dict[str, object]:
    return {
        "name": node.name,
        "ip": node.ip,
        "main": node.main,
        "hostname": node.hostname or node.ip,
        "user": node.user,
        "port": node.port or _SSH_PORT,
        "sshport": node.port or _SSH_PORT,
    }


def _cpu_count(machine: Machine, system: System) -> int:
    total = whole_number(system, "cpu", "total_count") or machine.cores
    return max(1, total - (whole_number(system, "cpu", "reserved_cores") or 0))


def _workers(system: System, cpu_per_gpu: int) -> int:
    asked = whole_number(system, "cpu", "n_workers")
    if asked is not None:
        return asked
    fewest, most = whole_number(system, "cpu", "min"), whole_number(system, "cpu", "max")
    fewest = _FEWEST_WORKERS if fewest is None else fewest
    return min(max(cpu_per_gpu, fewest), _MOST_WORKERS if most is None else most)
