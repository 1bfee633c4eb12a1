"""Tables spread over the processes of a job, as DLRM is trained on several devices: each holds some for everybody's samples.

The MLPs are the same everywhere (data parallel), tables are in one process only (model parallel). Before looking up, each
process sends the others the rows they are to look up; after it, gets the vectors for its samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass
class Placement:
    """Which process holds which tables."""

    tables: list[list[int]]  # of each process
    rank: int

    @property
    def here(self) -> list[int]:
        return self.tables[self.rank]

    @property
    def order(self) -> list[int]:
        """All tables as they come in from the processes."""
        return [number for numbers in self.tables for number in numbers]


def place(rows: tuple[int, ...], processes: int, rank: int) -> Placement:
    """Each table, the largest first, goes to the process with the fewest rows so far."""
    if processes > len(rows):
        raise SystemExit(f"cannot be measured here: {len(rows)} tables for {processes} processes")
    tables: list[list[int]] = [[] for _ in range(processes)]
    for number in sorted(range(len(rows)), key=lambda number: -rows[number]):
        fewest = min(
            range(processes), key=lambda process: (sum(rows[n] for n in tables[process]), len(tables[process]))
        )
        tables[fewest].append(number)
    return Placement([sorted(numbers) for numbers in tables], rank)


def exchange_indices(indices: Tensor, placement: Placement) -> Tensor:
    """(all tables in `order`, samples here, lookups) to (tables here, samples of all processes, lookups)"""
    sent = indices.contiguous()
    counts = [len(numbers) for numbers in placement.tables]
    processes, here = len(counts), len(placement.here)
    got = sent.new_empty(processes * here, *sent.shape[1:])
    dist.all_to_all_single(got, sent, [here] * processes, counts)
    return got.view(processes, here, *sent.shape[1:]).transpose(0, 1).flatten(1, 2)


def exchange_vectors(found: Tensor, placement: Placement) -> Tensor:
    """(tables here, samples of all processes, width) to (all tables in `order`, samples here, width)"""
    processes = len(placement.tables)
    sent = found.unflatten(1, (processes, -1)).transpose(0, 1).flatten(0, 1)
    counts = [len(numbers) for numbers in placement.tables]
    got: Tensor = _Exchange.apply(sent, [len(placement.here)] * processes, counts)
    return got


class _Exchange(torch.autograd.Function):
    """Slices of the first dimension to every process; their gradients the way back."""

    @staticmethod
    def forward(context: Any, sent: Tensor, out: list[int], into: list[int]) -> Tensor:
        context.splits = out, into
        return _swap(sent, out, into)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        out, into = context.splits
        # The loss is the mean over all processes, as it is for the parameters they share.
        return _swap(gradient, into, out) / len(out), None, None


def _swap(sent: Tensor, out: list[int], into: list[int]) -> Tensor:
    got = sent.new_empty(sum(into), *sent.shape[1:])
    dist.all_to_all_single(got, sent.contiguous(), into, out)
    return got
