#!/usr/bin/env python3
"""All-reduce over the processes of torchrun: NCCL or RCCL between GPUs, Gloo between CPUs."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_shared"))

import torch
import torch.distributed as dist

from benchprobe import give, iterate
from workload.claims import Claim, conclude
from workload.devices import choose, dtype_of, process_group, rank, set_up, synchronize, world_size
from workload.options import parse, parser
from workload.several import check_in_several, need_devices, refuse

KIB, MIB = 1 << 10, 1 << 20
SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"mib": 4, "smallest": 4 * KIB, "repetitions": 5},
    "small": {"mib": 64, "smallest": 4 * KIB, "repetitions": 10},
    "full": {"mib": 1024, "smallest": KIB, "repetitions": 20},
}
WARMUP = 5
FACTOR = 4  # from one size of the sweep to the next


def main(argv: list[str] | None = None) -> int:
    found = parser(__doc__ or "", SIZES)
    found.add_argument("--mib", type=int, help="of the largest message, which is the one that counts  [by size]")
    found.add_argument("--smallest", type=int, help="bytes of the smallest message of the sweep  [by size]")
    found.add_argument("--repetitions", type=int, help="of each size of the sweep  [by size]")
    options = parse(found, SIZES, argv)
    if world_size() == 1:
        if options.check:
            return conclude(
                [Claim("two processes agree on the sum", 1, float(check_in_several(2, choose(options.device))))]
            )
        refuse("an all-reduce needs several processes; start it by torchrun (launcher: torchrun, in a suite)")
    device = set_up(options)
    need_devices(device)
    with process_group(device):
        if options.check:
            return check(options, device)
        sweep(options, device)
        message = torch.zeros(elements(options.mib * MIB, options), device=device, dtype=dtype_of(options.precision))
        for _ in iterate("all_reduce", range(options.steps), batch_size=options.mib * MIB, unit="B"):
            dist.all_reduce(message)
    return 0


def sweep(options: Any, device: torch.device) -> None:
    """Figures of each size, told by the first rank, as nccl-tests defines them."""
    say(f"{'bytes':>12}  {'time/µs':>12}  {'algbw/GB/s':>10}  {'busbw/GB/s':>10}")
    for size in sizes(options):
        message = torch.zeros(elements(size, options), device=device, dtype=dtype_of(options.precision))
        seconds = timed(message, device, options.repetitions)
        algorithm = size / seconds / 1e9
        bus = algorithm * bus_factor(world_size())
        say(f"{size:>12}  {seconds * 1e6:>12.1f}  {algorithm:>10.3f}  {bus:>10.3f}")
        if rank() == 0:
            give(**{f"algorithm_bandwidth_gb_s.{name_of(size)}": algorithm, f"bus_bandwidth_gb_s.{name_of(size)}": bus})


def bus_factor(processes: int) -> float:
    """From the algorithm's bandwidth to that of the links: each byte goes n - 1 times out and back, over n ranks."""
    return 2 * (processes - 1) / processes


def sizes(options: Any) -> list[int]:
    """Bytes of each message, from the smallest on, and the largest."""
    found, size, largest = [], options.smallest, options.mib * MIB
    while size < largest:
        found.append(size)
        size *= FACTOR
    return [*found, largest]


def elements(size: int, options: Any) -> int:
    return size // dtype_of(options.precision).itemsize


def timed(message: torch.Tensor, device: torch.device, repetitions: int) -> float:
    """Seconds of one all-reduce: the mean over repetitions and ranks."""
    for _ in range(WARMUP):
        dist.all_reduce(message)
    synchronize(device)
    dist.barrier()
    began = perf_counter()
    for _ in range(repetitions):
        dist.all_reduce(message)
    synchronize(device)
    took = torch.tensor((perf_counter() - began) / repetitions, device=device)
    dist.all_reduce(took)
    return float(took) / world_size()


def name_of(size: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{name}"
    return f"{size}B"


def say(line: str) -> None:
    if rank() == 0:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def check(options: Any, device: torch.device) -> int:
    """Every rank gets the sum of what all ranks gave, at every size."""
    claims = []
    for size in sizes(options):
        message = torch.full(
            (elements(size, options),), float(rank() + 1), device=device, dtype=dtype_of(options.precision)
        )
        dist.all_reduce(message)
        expected = world_size() * (world_size() + 1) / 2
        claims.append(Claim(f"the sum over ranks, {name_of(size)}", 1, float(bool((message == expected).all()))))
    return conclude(claims)


if __name__ == "__main__":
    sys.exit(main())
