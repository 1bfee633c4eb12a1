"""The places of one launch: which of its processes gets which devices, on which machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.machine import Machine

if TYPE_CHECKING:
    from benchwright.plan.words.machine_facts import MachineFacts

LOCALHOST = "localhost"


class ProcessSlot(msgspec.Struct, frozen=True):
    """One process. `rank` of `together` on its machine; its machine is number `node_rank` of `machines`."""

    devices: tuple[int, ...] = ()
    device: int | None = None
    job: int | None = None
    node: str = LOCALHOST
    rank: int = 0
    together: int = 1
    node_rank: int = 0
    machines: int = 1
    address: str = "127.0.0.1"  # of the main machine


def plain_slots(benchmark: Benchmark, machine: Machine) -> list[ProcessSlot]:
    """Of a command, a task or a script."""
    placement = benchmark.placement
    if placement.per_device and machine.accelerators:
        together = len(machine.accelerators)
        return [
            ProcessSlot(devices=(a.index,), device=a.index, rank=rank, together=together)
            for rank, a in enumerate(machine.accelerators)
        ]
    if placement.per_device or (placement.jobs == 1 and not placement.numbered):
        devices = tuple(a.index for a in machine.accelerators[: placement.needs_devices])
        return [ProcessSlot(devices=devices, device=devices[0] if devices else 0)]
    return [ProcessSlot(job=n, rank=n, together=placement.jobs) for n in range(placement.jobs)]


def suite_slots(benchmark: Benchmark, facts: MachineFacts) -> list[ProcessSlot]:
    """Of a suite's benchmark: the same on each of its machines, the main one first; jobs see all devices."""
    placement = benchmark.placement
    if placement.per_device:
        slots = [ProcessSlot(devices=(device,), device=device) for device in facts.devices] or [ProcessSlot(device=0)]
    elif placement.jobs > 1 or placement.numbered:
        slots = [ProcessSlot(devices=facts.devices, job=n) for n in range(placement.jobs)]
    else:
        devices = facts.devices[: placement.needs_devices or None]
        slots = [ProcessSlot(devices=devices, device=devices[0] if devices else 0)]
    nodes = facts.nodes[: placement.machines]
    address = nodes[0].ip if nodes else ProcessSlot().address
    return [
        ProcessSlot(
            devices=slot.devices,
            device=slot.device,
            job=slot.job,
            node=name,
            rank=rank,
            together=len(slots),
            node_rank=node_rank,
            machines=placement.machines,
            address=address,
        )
        for node_rank, name in enumerate([node.name for node in nodes] or [LOCALHOST])
        for rank, slot in enumerate(slots)
    ]
