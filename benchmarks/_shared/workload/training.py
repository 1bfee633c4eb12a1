"""The measured loop of the training benchmarks, and the check of what they claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice, repeat
from typing import Any

import torch

from benchprobe import give, iterate
from workload.claims import Claim, check_falls, conclude, counted_flops, parameter_count
from workload.devices import autocast, process_group, rank, set_up, world_size
from workload.moved import training_bytes

CHECK_STEPS = 30


@dataclass
class Training:
    """What one benchmark trains. `flops_per_item`: of forward and backward together, by the benchmark's own formula.

    `batches` are gone through again and again; `parameters` is what the public model has at this size, where there is one.
    `counted`: the loss as its arithmetic is to be counted, without what a kernel or checkpointing computes twice.
    """

    model: torch.nn.Module
    batches: Iterable[Any]
    loss: Callable[[torch.nn.Module, Any], torch.Tensor]
    items: int  # in one batch
    unit: str  # what they are
    flops_per_item: float | None = None
    parameters: int | None = None
    optimizer: Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer] = field(
        default=lambda parameters: torch.optim.AdamW(parameters, lr=1e-3)
    )
    trainable: int | None = None  # of the parameters, where some are frozen
    counted: Callable[[torch.nn.Module, Any], torch.Tensor] | None = None
    counted_items: int | None = None  # where `counted` takes a part of the batch


def run(options: Any, build: Callable[[Any, torch.device], Training]) -> int:
    """Trains what `build` makes, in a loop that is measured; with `--check`, checks its claims instead."""
    device = set_up(options)
    with process_group(device):
        training = build(options, device)
        training.model.to(device)
        if options.check:
            return check(options, device, training)
        train(options, device, training)
    return 0


def train(options: Any, device: torch.device, training: Training) -> None:
    optimizer = training.optimizer([p for p in training.model.parameters() if p.requires_grad])
    batches = _again_and_again(training.batches)
    first = next(batches)
    moved = _moved(options, device, training, optimizer, first)
    if rank() == 0:
        give(bytes_per_item=moved / training.items)
        if training.flops_per_item is not None:
            give(**{f"flops_per_item.{options.precision}": training.flops_per_item})
    step = _step(options, device, training, optimizer)
    batches = islice(chain((first,), batches), options.steps)
    for batch in iterate("train", batches, batch_size=training.items, unit=training.unit):
        give(loss=step(batch))


def _moved(options: Any, device: torch.device, training: Training, optimizer: torch.optim.Optimizer, batch: Any) -> int:
    """Bytes of one step, by its forward pass, as it is without a compiler."""
    training.model.train()
    with autocast(device, options.precision):
        return training_bytes(
            training.model, lambda: training.loss(training.model, batch), optimizer, kept=not options.compile
        )


def _step(
    options: Any, device: torch.device, training: Training, optimizer: torch.optim.Optimizer
) -> Callable[[Any], torch.Tensor]:
    model: Any = training.model
    model.train()
    if world_size() > 1:
        devices = [device] if device.type == "cuda" else None
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=devices)
    if options.compile:
        model = torch.compile(model)
    scaler = torch.amp.GradScaler(device.type) if options.precision == "fp16" and device.type == "cuda" else None

    def step(batch: Any) -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        with autocast(device, options.precision):
            loss = training.loss(model, batch)
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        return loss.detach()

    return step


def check(options: Any, device: torch.device, training: Training) -> int:
    """Parameters, arithmetic of one step and a loss that falls."""
    claims = []
    if training.parameters is not None:
        claims.append(Claim("parameters", training.parameters, parameter_count(training.model), 0.0))
    if training.trainable is not None:
        learning = sum(p.numel() for p in training.model.parameters() if p.requires_grad)
        claims.append(Claim("trainable parameters", training.trainable, learning, 0.0))
    batches = _again_and_again(training.batches)
    if training.flops_per_item is not None:
        training.model.train()
        batch = next(batches)
        loss = training.counted or training.loss
        counted = counted_flops(lambda: loss(training.model, batch).backward())
        claims.append(
            Claim("FLOPs per item", training.flops_per_item, counted / (training.counted_items or training.items))
        )
        training.model.zero_grad(set_to_none=True)
    optimizer = training.optimizer([p for p in training.model.parameters() if p.requires_grad])
    step = _step(options, device, training, optimizer)
    claims.append(check_falls([float(step(batch)) for batch in islice(batches, CHECK_STEPS)]))
    return conclude(claims)


def _again_and_again(batches: Iterable[Any]) -> Iterator[Any]:
    return chain.from_iterable(repeat(batches))
