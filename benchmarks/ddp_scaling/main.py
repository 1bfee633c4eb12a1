#!/usr/bin/env python3
"""The same training in 1, 2, 4… processes with DistributedDataParallel: how much of each further one is gained."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_shared"))

import torch

from workload.devices import choose
from workload.options import parse, parser
from workload.several import become_several, need_devices

SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"precision": "fp32", "batch_size": 64, "width": 256, "blocks": 2, "phase_steps": 10},
    "small": {"precision": "fp32", "batch_size": 128, "width": 512, "blocks": 4, "phase_steps": 20},
    "full": {"precision": "bf16", "batch_size": 4096, "width": 2048, "blocks": 8, "phase_steps": 50},
}

MOST_ON_CPU = 8  # of `all`: each has the model, its gradients and the optimizer's state in main memory


def main(argv: list[str] | None = None) -> int:
    found = parser(__doc__ or "", SIZES)
    found.add_argument(
        "--processes", help="start so many, or `all`: one for each device or core; torchrun does it otherwise"
    )
    found.add_argument("--width", type=int, help="of the model's layers  [by size]")
    found.add_argument("--blocks", type=int, help="of the model  [by size]")
    found.add_argument("--phase-steps", type=int, help="steps measured with fewer processes  [by size]")
    options = parse(found, SIZES, argv)
    if options.processes and not options.check:
        wanted = how_many(options.processes, options.device)
        need_devices(choose(options.device), wanted)
        become_several(wanted)
    from scaling import run  # it loads benchprobe, which is for the processes that are measured

    return run(options)


def how_many(word: str, device: str) -> int:
    if word != "all":
        return int(word)
    if choose(device).type == "cuda":
        return torch.cuda.device_count()
    return min(len(os.sched_getaffinity(0)), MOST_ON_CPU)


if __name__ == "__main__":
    sys.exit(main())
