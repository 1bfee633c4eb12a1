"""Trains DLRM with its tables spread over processes for some steps, and in each process all of it alone; compares."""

from __future__ import annotations

import torch
import torch.distributed as dist
from dlrm_model import CONFIGS, DLRM
from main import build, clicks, loss, options

CONFIG, SAMPLES, RATE, STEPS = CONFIGS["nano"], 32, 0.3, 4
CPU = torch.device("cpu")


def learn(model: torch.nn.Module, trained: torch.nn.Module, batches: list) -> None:
    optimizer = torch.optim.SGD(trained.parameters(), lr=RATE)
    for batch in batches:
        optimizer.zero_grad()
        loss(model, batch).backward()
        optimizer.step()


dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
alone = DLRM(CONFIG, seed=0)
given = options(["--device", "cpu", "--batch-size", str(SAMPLES)])
torch.manual_seed(0)
shared = build(given, CPU).model  # its tables were spread
assert len(shared.tables.bags) < len(CONFIG.rows)

own = [clicks(CONFIG, SAMPLES, 1, STEPS, seed, CPU) for seed in range(dist.get_world_size())]
learn(torch.nn.parallel.DistributedDataParallel(shared), shared, own[rank])
together = [
    (torch.cat([b[0] for b in parts]), torch.cat([b[1] for b in parts], dim=1), torch.cat([b[2] for b in parts]))
    for parts in zip(*own, strict=True)
]
learn(alone, alone, together)

for one, other in ((alone.bottom, shared.bottom), (alone.top, shared.top)):
    for expected, found in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.allclose(expected, found, atol=1e-5)
for bag, number in zip(shared.tables.bags, shared.placement.here, strict=True):
    assert torch.allclose(alone.tables.bags[number].weight, bag.weight, atol=1e-5)
print("the same")
dist.destroy_process_group()
