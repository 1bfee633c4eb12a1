"""Devices, precision, seeds and processes."""

from __future__ import annotations

import contextlib
import os
import random
from contextlib import AbstractContextManager
from typing import Any

import torch

_AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
_DTYPES = {"fp32": torch.float32, "tf32": torch.float32, **_AUTOCAST}


def set_up(options: Any) -> torch.device:
    """Seeds, threads, TF32; returns the device of this process."""
    random.seed(options.seed)
    torch.manual_seed(options.seed)
    if options.threads:
        torch.set_num_threads(options.threads)
    tf32 = options.precision != "fp32"
    if torch.cuda.is_available():
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.backends.cudnn.allow_tf32 = tf32
    device = choose(options.device)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    return device


def choose(name: str) -> torch.device:
    """The device called so; `auto`: an accelerator if there is one. With several processes, each has its own."""
    if name == "auto":
        accelerator = torch.accelerator.current_accelerator() if hasattr(torch, "accelerator") else None
        name = accelerator.type if accelerator is not None and torch.accelerator.is_available() else "cpu"
    if name == "cuda" and world_size() > 1:
        return torch.device("cuda", local_rank() % max(1, torch.cuda.device_count()))
    return torch.device(name if name != "cuda" else "cuda:0")


def dtype_of(precision: str) -> torch.dtype:
    return _DTYPES[precision]


def autocast(device: torch.device, precision: str) -> AbstractContextManager[Any]:
    """Arithmetic in `precision` where that loses nothing that matters; parameters stay in float32."""
    if precision not in _AUTOCAST:
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=_AUTOCAST[precision])


def synchronize(device: torch.device) -> None:
    if device.type != "cpu":
        torch.accelerator.synchronize(device) if hasattr(torch, "accelerator") else torch.cuda.synchronize(device)


def world_size() -> int:
    return int(os.environ.get("WORLD_SIZE", "1"))


def rank() -> int:
    return int(os.environ.get("RANK", "0"))


def local_rank() -> int:
    return int(os.environ.get("LOCAL_RANK", "0"))


@contextlib.contextmanager
def process_group(device: torch.device) -> Any:
    """The processes of torchrun as one group, while the block runs; nothing where there is one process."""
    if world_size() == 1:
        yield
        return
    import torch.distributed as dist

    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield
    finally:
        dist.destroy_process_group()
