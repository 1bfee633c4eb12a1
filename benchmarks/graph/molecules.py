"""Molecules that nobody made, of the size and shape of those in ogbg-molhiv and ZINC, many in one graph without edges between."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

ATOM_FEATURES = (119, 4, 12, 12, 10, 6, 6, 2, 2)  # how many values each can have, as OGB's encoders had it
BOND_FEATURES = (5, 6, 2)
ELEMENTS, BONDS = 20, 4  # that occur, in the first column
RINGS = 0.12  # for each atom
SMALLEST, LARGEST = 10, 41  # atoms: 25.5 on average, with 27.6 bonds


@dataclass
class Graphs:
    """A batch: the nodes of all graphs after each other."""

    atoms: Tensor  # (nodes, atom features)
    bonds: Tensor  # (edges, bond features); every bond is two edges
    source: Tensor  # (edges): the node an edge comes from
    target: Tensor  # (edges)
    graph: Tensor  # (nodes): which graph it belongs to
    label: Tensor  # (graphs): a number that follows from the elements

    def to(self, device: torch.device) -> Graphs:
        return Graphs(*(getattr(self, name).to(device) for name in self.__dataclass_fields__))


def atoms_of(batch: int) -> Tensor:
    """The sizes of the molecules of a batch: the same in every batch, so that each has the same nodes and edges."""
    return SMALLEST + torch.arange(batch) * (LARGEST - SMALLEST + 1) // batch


def counts(batch: int) -> tuple[int, int]:
    """Nodes and edges of a batch."""
    sizes = atoms_of(batch)
    return int(sizes.sum()), int(2 * (sizes - 1 + _rings(sizes)).sum())


def batches(batch: int, count: int, seed: int) -> list[Graphs]:
    value = torch.randn(ELEMENTS, generator=torch.Generator().manual_seed(0))  # of an element, in every process
    generator = torch.Generator().manual_seed(seed)
    return [_batch(atoms_of(batch)[torch.randperm(batch, generator=generator)], value, generator) for _ in range(count)]


def _batch(sizes: Tensor, value: Tensor, generator: torch.Generator) -> Graphs:
    nodes = int(sizes.sum())
    graph = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
    first = sizes.cumsum(0) - sizes
    place = torch.arange(nodes) - first[graph]
    later = torch.nonzero(place > 0).flatten()
    # A chain that branches: every atom but the first is bound to one of the three before it.
    back = 1 + (torch.rand(len(later), generator=generator) * place[later].clamp(max=3)).long()
    tree = torch.stack([later - back, later])
    # Rings: atoms five places apart.
    of = torch.repeat_interleave(torch.arange(len(sizes)), _rings(sizes))
    begin = first[of] + (torch.rand(len(of), generator=generator) * (sizes[of] - 5)).long()
    bond = torch.cat([tree, torch.stack([begin, begin + 5])], dim=1)
    features = [torch.randint(most, (bond.shape[1],), generator=generator) for most in (BONDS, *BOND_FEATURES[1:])]
    elements = [torch.randint(most, (nodes,), generator=generator) for most in (ELEMENTS, *ATOM_FEATURES[1:])]
    bonds = torch.stack(features, dim=1)
    label = torch.zeros(len(sizes)).index_add(0, graph, value[elements[0]]) / sizes.sqrt()
    source, target = torch.cat([bond, bond.flip(0)], dim=1)
    return Graphs(torch.stack(elements, dim=1), torch.cat([bonds, bonds]), source, target, graph, label)


def _rings(sizes: Tensor) -> Tensor:
    return (RINGS * sizes).round().long()
