#!/usr/bin/env python3
"""The smallest operation, again and again: what it costs to hand work over, and to wait for it."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_shared"))

import torch

from benchprobe import give, iterate
from workload.claims import Claim, conclude
from workload.devices import set_up, synchronize
from workload.options import parse, parser

SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"batch_size": 1000},
    "small": {"batch_size": 1000},
    "full": {"batch_size": 1000},
}


def main(argv: list[str] | None = None) -> int:
    found = parser(__doc__ or "", SIZES)
    found.add_argument(
        "--wait", action="store_true", help="wait for the device after each operation: the time there and back"
    )
    options = parse(found, SIZES, argv)
    device = set_up(options)
    number = torch.zeros(1, device=device)
    with torch.inference_mode():
        operations = launching(number, options.batch_size, device if options.wait else None)
        if options.check:
            return check(options, number, operations)
        name = "round_trip" if options.wait else "launch"
        took = []
        for _ in iterate(name, range(options.steps), batch_size=options.batch_size, unit="operations"):
            began = perf_counter()
            operations()
            took.append(perf_counter() - began)
    give(**{f"{name}_latency_us": statistics.median(took) / options.batch_size * 1e6})
    return 0


def launching(number: torch.Tensor, count: int, waits_for: torch.device | None) -> Callable[[], Any]:
    """`count` operations on one number; of a device they are handed over only, unless it is waited for."""

    def operations() -> None:
        add = number.add_
        for _ in range(count):
            add(1)

    def with_waiting() -> None:
        for _ in range(count):
            number.add_(1)
            synchronize(waits_for)  # type: ignore[arg-type]

    return operations if waits_for is None else with_waiting


def check(options: Any, number: torch.Tensor, operations: Callable[[], Any]) -> int:
    """Each operation was done, once."""
    operations()
    return conclude([Claim("operations of a step", options.batch_size, float(number), 0.0)])


if __name__ == "__main__":
    sys.exit(main())
