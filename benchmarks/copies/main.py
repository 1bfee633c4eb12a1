#!/usr/bin/env python3
"""Copies between main memory and a device, from memory that is pinned or not; without a device, within main memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_shared"))

import torch

from benchprobe import give, iterate
from workload.claims import Claim, conclude
from workload.devices import set_up, synchronize
from workload.options import parse, parser
from workload.repeating import times_a_step

MIB = 1 << 20
SIZES: dict[str, dict[str, Any]] = {"tiny": {"mib": 16}, "small": {"mib": 64}, "full": {"mib": 256}}
TO_DEVICE, TO_HOST, WITHIN_HOST = "host_to_device", "device_to_host", "host_to_host"


def main(argv: list[str] | None = None) -> int:
    found = parser(__doc__ or "", SIZES)
    found.add_argument("--direction", choices=[TO_DEVICE, TO_HOST], default=TO_DEVICE)
    found.add_argument("--memory", choices=["pinned", "pageable"], default="pinned", help="of the host  [pinned]")
    found.add_argument("--mib", type=int, help="of one copy  [by size]")
    options = parse(found, SIZES, argv)
    device = set_up(options)
    direction = WITHIN_HOST if device.type == "cpu" else options.direction
    source, target, copy = copying(direction, options, device)
    if options.check:
        return check(source, target, copy, device)
    if direction == WITHIN_HOST:
        sys.stdout.write("there is no device: main memory is copied to main memory\n")
    count = options.batch_size or times_a_step(copy, device)
    give(**{f"bytes_per_item.{direction}": 1.0})  # the items are the bytes themselves
    for _ in iterate(direction, range(options.steps), batch_size=count * source.nbytes, unit="B"):
        for _ in range(count):
            copy()
    return 0


def copying(direction: str, options: Any, device: torch.device) -> tuple[torch.Tensor, torch.Tensor, Callable[[], Any]]:
    """What is copied, where to, and what does it. From pinned memory the host need not wait for the device."""
    count, pinned = options.mib * MIB, options.memory == "pinned" and direction != WITHIN_HOST
    host = torch.randint(256, (count,), dtype=torch.uint8, pin_memory=pinned)
    other = torch.zeros(count, dtype=torch.uint8, device=device)
    if direction == TO_HOST:
        other.copy_(host)
        host.zero_()
        source, target = other, host
    else:
        source, target = host, other
    return source, target, lambda: target.copy_(source, non_blocking=pinned)


def check(source: torch.Tensor, target: torch.Tensor, copy: Callable[[], Any], device: torch.device) -> int:
    copy()
    synchronize(device)
    return conclude([Claim("every byte arrives", 1, float(torch.equal(source.cpu(), target.cpu())))])


if __name__ == "__main__":
    sys.exit(main())
