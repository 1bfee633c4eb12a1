"""The measured loop of inference benchmarks that answer one batch after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain, islice, repeat
from typing import Any

import torch

from benchprobe import give, iterate
from workload.claims import Claim, conclude, counted_flops, parameter_count
from workload.devices import autocast, set_up
from workload.moved import inference_bytes, tensors


@dataclass
class Inference:
    """`answer` takes the model and a batch and returns tensors; `flops_per_item` is of the forward pass."""

    model: torch.nn.Module
    batches: Iterable[Any]
    answer: Callable[[torch.nn.Module, Any], Any]
    items: int
    unit: str  # what the items are
    flops_per_item: float | None = None
    parameters: int | None = None
    right: Callable[[Any], bool] | None = None  # whether an answer is what it must be, for --check
    counted: Callable[[torch.nn.Module, Any], Any] | None = None  # `answer` as its arithmetic is to be counted
    read: Callable[[torch.nn.Module, Any], Any] | None = None  # `answer` without what it measures itself


def run(options: Any, build: Callable[[Any, torch.device], Inference]) -> int:
    device = set_up(options)
    inference = build(options, device)
    inference.model.to(device).eval()
    if options.check:
        return check(options, device, inference)
    model: Any = torch.compile(inference.model) if options.compile else inference.model
    if inference.flops_per_item is not None:
        give(**{f"flops_per_item.{options.precision}": inference.flops_per_item})
    with autocast(device, options.precision):
        give(bytes_per_item=moved(inference) / inference.items)
    batches = islice(chain.from_iterable(repeat(inference.batches)), options.steps)
    with torch.inference_mode(), autocast(device, options.precision):
        for batch in iterate("infer", batches, batch_size=inference.items, unit=inference.unit):
            inference.answer(model, batch)
    return 0


def moved(inference: Inference) -> int:
    """Bytes of one batch, by answering it once."""
    batch = next(iter(inference.batches))
    answer = inference.read or inference.answer
    return inference_bytes(inference.model, lambda: answer(inference.model, batch), batch)


def check(options: Any, device: torch.device, inference: Inference) -> int:
    """Parameters, arithmetic, the same answer twice, and the benchmark's own idea of a right one."""
    claims = []
    if inference.parameters is not None:
        claims.append(Claim("parameters", inference.parameters, parameter_count(inference.model), 0.0))
    batch = next(iter(inference.batches))
    with torch.no_grad():
        if inference.flops_per_item is not None:
            answer = inference.counted or inference.answer
            counted = counted_flops(lambda: answer(inference.model, batch))
            claims.append(Claim("FLOPs per item", inference.flops_per_item, counted / inference.items))
        first, again = (inference.answer(inference.model, batch) for _ in range(2))
        same = all(
            torch.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(tensors(first), tensors(again), strict=True)
        )
        claims.append(Claim("the same answer twice", 1, float(same)))
        if inference.right is not None:
            claims.append(Claim("a right answer", 1, float(inference.right(first))))
    return conclude(claims)
