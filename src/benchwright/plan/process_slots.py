"""The processes of one launch: their devices and machines."""

from __future__ import annotations

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.job import Reports
from benchwright.core.machine import Machine

LOCALHOST = "localhost"


class ProcessSlot(msgspec.Struct, frozen=True):
    """One process. `rank` of `together` on its machine; its machine is number `node_rank` of `machines`.

    `tag`: what follows the benchmark's name in its name, where that is not its device, job and node.
    """

    devices: tuple[int, ...] = ()
    device: int | None = None
    job: int | None = None
    node: str = LOCALHOST
    rank: int = 0
    together: int = 1
    node_rank: int = 0
    machines: int = 1
    address: str = "127.0.0.1"  # of the main machine
    tag: tuple[str, ...] = ()
    reports: Reports = "always"


def plain_slots(benchmark: Benchmark, machine: Machine) -> list[ProcessSlot]:
    """Slots of a command, a task or a script."""
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
