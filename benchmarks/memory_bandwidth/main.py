#!/usr/bin/env python3
"""Memory bandwidth, as STREAM measures it: copy, scale, add and triad over arrays that no cache holds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_shared"))

import torch

from benchprobe import give, iterate
from workload.claims import Claim, conclude
from workload.devices import set_up
from workload.options import parse, parser
from workload.repeating import times_a_step

MIB = 1 << 20
SIZES: dict[str, dict[str, Any]] = {"tiny": {"mib": 32}, "small": {"mib": 256}, "full": {"mib": 2048}}
SCALAR = 3.0
ARRAYS = {"copy": 2, "scale": 2, "add": 3, "triad": 3}  # how many are gone through, read or written


def main(argv: list[str] | None = None) -> int:
    found = parser(__doc__ or "", SIZES)
    found.add_argument("--operation", choices=list(ARRAYS), default="triad")
    found.add_argument("--mib", type=int, help="of one array  [by size]")
    options = parse(found, SIZES, argv)
    device = set_up(options)
    a, b, c = (torch.rand(options.mib * MIB // 4, device=device) for _ in range(3))
    work = operation(options.operation, a, b, c)
    if options.check:
        return check(options, a, b, c, work)
    count = options.batch_size or times_a_step(work, device)
    moved = count * bytes_moved(options.operation, a.nbytes)
    give(bytes_per_item=1.0)  # the items are the bytes themselves
    for _ in iterate("memory_bandwidth", range(options.steps), batch_size=moved, unit="B"):
        for _ in range(count):
            work()
    return 0


def bytes_moved(name: str, array_bytes: int) -> int:
    """As STREAM counts: what the program reads and writes, not what a cache reads before it can write."""
    return ARRAYS[name] * array_bytes


def operation(name: str, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> Callable[[], Any]:
    """Each goes through its arrays once, in one pass."""
    if name == "copy":
        return lambda: c.copy_(a)
    if name == "scale":
        return lambda: torch.mul(c, SCALAR, out=b)
    if name == "add":
        return lambda: torch.add(a, b, out=c)
    return lambda: torch.add(b, c, alpha=SCALAR, out=a)


def check(options: Any, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, work: Callable[[], Any]) -> int:
    """Every element is what it must be, and the bytes are those of the arrays."""
    expected = {"copy": lambda: a, "scale": lambda: SCALAR * c, "add": lambda: a + b, "triad": lambda: b + SCALAR * c}
    right = expected[options.operation]().clone()
    work()
    written = {"copy": c, "scale": b, "add": c, "triad": a}[options.operation]
    used = {"copy": (a, c), "scale": (c, b), "add": (a, b, c), "triad": (b, c, a)}[options.operation]
    total = sum(t.numel() * t.element_size() for t in used)
    return conclude(
        [
            Claim("bytes of a pass", bytes_moved(options.operation, a.nbytes), total, 0.0),
            Claim("a right answer", 1, float(torch.allclose(written, right))),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
