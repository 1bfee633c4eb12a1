#!/usr/bin/env python3
"""Matrix products, one after the other: the arithmetic a machine can do in one precision."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_shared"))

import torch

from benchprobe import give, iterate
from workload.claims import Claim, conclude, counted_flops
from workload.devices import dtype_of, set_up
from workload.options import PRECISIONS, parse, parser
from workload.repeating import times_a_step
from workload.several import refuse

SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"m": 1024, "n": 1024, "k": 1024, "precision": "fp32"},
    "small": {"m": 2048, "n": 2048, "k": 2048, "precision": "fp32"},
    "full": {"precision": "bf16"},
}
FULL = {"fp32": 8192, "tf32": 8192}  # rows and columns; of the other precisions more, to reach their peaks
FULL_FAST = 16384
FP8, INT8 = "fp8", "int8"
# The relative error of a product of normal numbers, against one in fp64: it tells in what it was really computed.
ERRORS = {"fp32": (0.0, 1e-5), "tf32": (2e-5, 2e-3), "bf16": (5e-4, 6e-3), "fp16": (5e-5, 3e-3), FP8: (5e-4, 2e-2)}
ERRORS[INT8] = (0.0, 0.0)  # whole numbers, added up in 32 bits: exact
CHECKED_ROWS = 16


def main(argv: list[str] | None = None) -> int:
    found = parser(__doc__ or "", SIZES, precisions=(*PRECISIONS, FP8, INT8))
    for name, what in (("m", "rows of the first"), ("n", "columns of the second"), ("k", "what they have in common")):
        found.add_argument(f"--{name}", type=int, help=f"{what}  [by size]")
    options = parse(found, SIZES, argv)
    for name in ("m", "n", "k"):
        setattr(options, name, getattr(options, name) or FULL.get(options.precision, FULL_FAST))
    device = set_up(options)
    with torch.inference_mode():
        a, b, multiply = product(options, device)
        if options.check:
            return check(options, a, b, multiply)
        count = options.batch_size or times_a_step(multiply, device)
        give(**{f"flops_per_item.{options.precision}": 1.0})  # the items are the FLOPs themselves
        work = count * flops(options.m, options.n, options.k)
        for _ in iterate("matmul", range(options.steps), batch_size=work, unit="FLOP"):
            for _ in range(count):
                multiply()
    return 0


def flops(m: int, n: int, k: int) -> int:
    """Two for each multiply-add."""
    return 2 * m * n * k


def product(options: Any, device: torch.device) -> tuple[torch.Tensor, torch.Tensor, Callable[[], torch.Tensor]]:
    """The matrices and what multiplies them; the program ends where this machine does not know the precision."""
    if options.precision == "tf32":
        need_tf32(device)
    if options.precision == INT8:
        return in_int8(options, device)
    a = torch.randn(options.m, options.k, device=device)
    b = torch.randn(
        options.n, options.k, device=device
    ).t()  # by columns, as fp8 needs it and the weights of a layer are
    if options.precision == FP8:
        return in_fp8(a, b)
    a, b = a.to(dtype_of(options.precision)), b.to(dtype_of(options.precision))
    c = torch.empty(options.m, options.n, device=device, dtype=a.dtype)
    return a, b, lambda: torch.mm(a, b, out=c)


def in_fp8(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, Callable[[], torch.Tensor]]:
    if a.device.type == "cpu":
        refuse("torch multiplies fp8 on a CPU number by number, which says nothing of the CPU; use --precision bf16")
    scale = torch.ones((), device=a.device)
    try:
        a8, b8 = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)

        def multiply() -> torch.Tensor:
            return torch._scaled_mm(a8, b8, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16)

        multiply()
    except (AttributeError, RuntimeError, NotImplementedError) as error:
        refuse(f"torch {torch.__version__} has no product in fp8 on {a.device.type}: {str(error).splitlines()[0]}")
    return a8, b8, multiply


def in_int8(options: Any, device: torch.device) -> tuple[torch.Tensor, torch.Tensor, Callable[[], torch.Tensor]]:
    """The operations are multiplications and additions of whole numbers, counted like FLOPs."""
    if device.type == "cpu":
        refuse("torch has no fast product in int8 on a CPU; use --precision bf16")
    a = torch.randint(-128, 128, (options.m, options.k), device=device, dtype=torch.int8)
    b = torch.randint(-128, 128, (options.n, options.k), device=device, dtype=torch.int8).t()
    c = torch.empty(options.m, options.n, device=device, dtype=torch.int32)
    try:
        torch._int_mm(a, b, out=c)
    except (AttributeError, RuntimeError, NotImplementedError) as error:
        refuse(f"torch {torch.__version__} has no product in int8 on {device.type}: {str(error).splitlines()[0]}")
    return a, b, lambda: torch._int_mm(a, b, out=c)


def need_tf32(device: torch.device) -> None:
    if device.type != "cuda":
        refuse(f"tf32 is arithmetic of GPUs, not of {device.type}; use --precision fp32")
    if torch.version.hip is None and torch.cuda.get_device_capability(device) < (8, 0):
        refuse(f"{torch.cuda.get_device_name(device)} has no tf32; it came with compute capability 8.0")


def check(options: Any, a: torch.Tensor, b: torch.Tensor, multiply: Callable[[], torch.Tensor]) -> int:
    """The arithmetic, and that the product is one, as exact as its precision and no more."""
    claims = [Claim("FLOPs of a product", flops(options.m, options.n, options.k), counted_flops(multiply))]
    right = a[:CHECKED_ROWS].double().cpu() @ b.double().cpu()
    error = float((multiply()[:CHECKED_ROWS].double().cpu() - right).norm() / right.norm())
    low, high = ERRORS[options.precision]
    claims.append(Claim(f"an error of {error:.2g} is that of {options.precision}", 1, float(low <= error <= high)))
    return conclude(claims)


if __name__ == "__main__":
    sys.exit(main())
