"""A small training loop: a convolutional net that learns to tell eight noisy patterns apart.

    python train.py                         runs as any script does
    python -m benchprobe train.py           shows rate, loss and memory while it runs
    benchwright run -- python train.py      measures it

The data is made up as it goes, from a seed, so nothing is downloaded.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import torch
from torch import nn

from benchprobe import give, iterate

CLASSES = 8
SIDE = 16


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200, help="batches to train on (default 200)")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1, help="threads torch computes with (default 1)")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:1 (default cpu)")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def noisy_patterns(steps: int, batch_size: int, device: str) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Batches of images and their classes: each class is a fixed pattern, hidden in noise."""
    patterns = torch.randn(CLASSES, 1, SIDE, SIDE, device=device)
    for _ in range(steps):
        classes = torch.randint(CLASSES, (batch_size,), device=device)
        noise = torch.randn(batch_size, 1, SIDE, SIDE, device=device)
        yield patterns[classes] + 2.0 * noise, classes


def small_net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * (SIDE // 4) ** 2, CLASSES),
    )


def main() -> None:
    options = parse_arguments()
    # Two threads on two busy cores spin against each other, so the number is said and not left to chance.
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)

    net = small_net().to(options.device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    batches = noisy_patterns(options.steps, options.batch_size, options.device)

    loss = torch.zeros(())
    for images, classes in iterate("train", batches):
        loss = nn.functional.cross_entropy(net(images), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        give(loss=loss)

    print(f"final loss: {loss.item():.4f}")


if __name__ == "__main__":
    main()
