"""What each process does: the training in ever more of them, then in all of them, measured."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from time import perf_counter
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

from benchprobe import give
from workload.claims import Claim, conclude
from workload.devices import autocast, process_group, rank, set_up, synchronize, world_size
from workload.several import check_in_several, need_devices
from workload.training import Training, check, train

INPUTS, CLASSES = 256, 16
KEPT_BATCHES = 4
WARMUP = 3
EXPANSION = 4


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide = nn.Linear(width, EXPANSION * width)
        self.narrow = nn.Linear(EXPANSION * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.narrow(functional.gelu(self.wide(self.norm(x))))


def model(width: int, blocks: int) -> nn.Module:
    layers = [nn.Linear(INPUTS, width), *(Block(width) for _ in range(blocks)), nn.Linear(width, CLASSES)]
    return nn.Sequential(*layers)


def parameter_formula(width: int, blocks: int) -> int:
    of_block = 2 * EXPANSION * width**2 + (EXPANSION + 1) * width + 2 * width
    return INPUTS * width + width + blocks * of_block + width * CLASSES + CLASSES


def flops_formula(width: int, blocks: int) -> float:
    """Of one item, forward and backward. Nobody needs the gradient of the first layer's input."""
    products = blocks * 2 * EXPANSION * width**2 + width * CLASSES
    return 2.0 * (3 * products + 2 * INPUTS * width)


def build(options: Any, device: torch.device) -> Training:
    torch.manual_seed(options.seed)  # the same model in every process and phase
    made = model(options.width, options.blocks).to(device)
    truth = torch.randn(INPUTS, CLASSES)
    torch.manual_seed(options.seed + 1 + rank())  # other data in each
    inputs = [torch.randn(options.batch_size, INPUTS) for _ in range(KEPT_BATCHES)]
    return Training(
        model=made,
        batches=[(x.to(device), (x @ truth).argmax(1).to(device)) for x in inputs],
        loss=lambda network, batch: functional.cross_entropy(network(batch[0]), batch[1]),
        items=options.batch_size,
        unit="vectors",
        flops_per_item=flops_formula(options.width, options.blocks),
        parameters=parameter_formula(options.width, options.blocks),
    )


def run(options: Any) -> int:
    device = set_up(options)
    need_devices(device)
    with process_group(device):
        if options.check:
            return checked(options, device)
        scale(options, device)
        train(options, device, build(options, device))
    return 0


def scale(options: Any, device: torch.device) -> None:
    """Items a second with 1, 2, 4… of the processes while the others wait, and what each of them adds."""
    alone = 0.0
    for count in counts(world_size()):
        group = dist.new_group(list(range(count))) if 1 < count < world_size() else None
        rate = phase(options, device, count, group) if rank() < count else 0.0
        if world_size() > 1:
            dist.barrier()
        alone = alone or rate
        if rank() == 0:
            give(**{f"throughput_of.{count}": rate, f"scaling_efficiency.{count}": rate / (count * alone)})


def counts(most: int) -> list[int]:
    """1, 2, 4… and the most."""
    found, count = [], 1
    while count < most:
        found.append(count)
        count *= 2
    return [*found, most]


def phase(options: Any, device: torch.device, count: int, group: Any) -> float:
    training = build(options, device)
    step = stepping(
        options, device, training, training.model if count == 1 else distributed(training.model, device, group)
    )
    batches = cycle(training.batches)
    for _ in range(WARMUP):
        step(next(batches))
    synchronize(device)
    if count > 1:
        dist.barrier(group)
    began = perf_counter()
    for _ in range(options.phase_steps):
        step(next(batches))
    synchronize(device)
    return count * training.items * options.phase_steps / (perf_counter() - began)


def distributed(network: nn.Module, device: torch.device, group: Any) -> nn.Module:
    devices = [device] if device.type == "cuda" else None
    return nn.parallel.DistributedDataParallel(network, device_ids=devices, process_group=group)


def stepping(options: Any, device: torch.device, training: Training, network: nn.Module) -> Callable[[Any], None]:
    optimizer = training.optimizer(training.model.parameters())

    def step(batch: Any) -> None:
        optimizer.zero_grad(set_to_none=True)
        with autocast(device, options.precision):
            loss = training.loss(network, batch)
        loss.backward()
        optimizer.step()

    return step


def checked(options: Any, device: torch.device) -> int:
    """Alone: parameters, arithmetic, a loss that falls, and then two processes: that they stay one model."""
    if world_size() == 1:
        wrong = check(options, device, build(options, device))
        together = Claim("two processes stay one model", 1, float(check_in_several(2, device)))
        return conclude([together]) or wrong
    training = build(options, device)
    step = stepping(options, device, training, distributed(training.model, device, None))
    for batch in training.batches:
        step(batch)
    own = torch.cat([p.detach().flatten().float() for p in training.model.parameters()])
    sums = torch.stack([own, own**2])
    dist.all_reduce(sums)
    spread = float((sums[1] / world_size() - (sums[0] / world_size()) ** 2).abs().max())
    data = torch.stack([batch[0].float().sum() for batch in training.batches]).sum()
    others = [torch.zeros_like(data) for _ in range(world_size())]
    dist.all_gather(others, data)
    return conclude(
        [
            Claim("parameters differ between processes by", 0.0, 0.0 if spread < 1e-6 else spread),
            Claim("each process has data of its own", world_size(), len({float(x) for x in others}), 0.0),
        ]
    )
