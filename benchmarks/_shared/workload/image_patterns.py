"""Images with something to learn in them: every class has a colour of its own, and a pattern of colours around that."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

ACROSS = 8  # cells of a pattern
KINDS = 10  # classes that occur, whatever a model could tell apart: enough images of each to learn it within some steps


def class_patterns(classes: int, seed: int) -> NDArray[np.float32]:
    """One for each class: 3 × ACROSS × ACROSS, between -1 and 1."""
    numbers = np.random.default_rng(seed)
    colours = numbers.uniform(-0.7, 0.7, (classes, 3, 1, 1))
    cells = numbers.uniform(-0.3, 0.3, (classes, 3, ACROSS, ACROSS))
    return (colours + cells).astype(np.float32)


def labelled_batches(
    count: int, batch: int, side: int, seed: int, device: torch.device
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Batches of normalised images with their labels, in the memory of the device: the pattern of the class, and noise."""
    numbers = torch.Generator().manual_seed(seed)
    patterns = 2 * torch.from_numpy(class_patterns(KINDS, seed))
    found = []
    for _ in range(count):
        labels = torch.randint(KINDS, (batch,), generator=numbers)
        images = torch.randn(batch, 3, side, side, generator=numbers).mul_(0.5)
        images += functional.interpolate(patterns[labels], size=(side, side), mode="bilinear")
        found.append((images.to(device), labels.to(device)))
    return found
