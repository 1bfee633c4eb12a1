"""Text without words: tokens of a Markov chain, made offline, in which each token tells something of the next.

A file is a row of little-endian uint16, one document after the other. The chain has the same shape as language in the two
ways that matter to a loss: some tokens are far more frequent than others, and few of them can follow a given one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workload.prepared import made_once

if TYPE_CHECKING:
    import torch

FILE = "tokens.bin"
DOCUMENT = 4096  # tokens of one document, in large files
FOLLOWERS = (0.6, 0.25, 0.1, 0.05)  # how likely each of the tokens is that can follow a given one
LARGEST = 1 << 16
SIZES = {
    "tiny": (1 << 16, 256),
    "small": (1 << 20, 4096),
    "full": (1 << 24, 30_000),
}  # tokens, and how many different ones


def prepare(folder: Path, size: str) -> Path:
    """The folder with the file of tokens; made now if it is not there yet."""
    count, symbols = SIZES[size]

    def fill(aside: Path) -> None:
        make(count, symbols).astype("<u2").tofile(aside / FILE)

    return made_once(folder, {"tokens": count, "symbols": symbols}, fill)


def make(count: int, symbols: int, seed: int = 0) -> Any:
    """`count` tokens or a few more, each below `symbols`. One step of numpy makes a token of every document."""
    if not 1 <= symbols <= LARGEST:
        raise ValueError(f"{symbols} different tokens do not fit into 16 bits")
    numbers = np.random.default_rng(seed)
    frequent = 1.0 / (np.arange(symbols) + 2.7)  # Zipf's law
    frequent /= frequent.sum()
    follow = numbers.choice(symbols, size=(symbols, len(FOLLOWERS)), p=frequent)
    length = min(DOCUMENT, max(64, int(count**0.5)))
    documents = -(-count // length)
    text = np.empty((documents, length), dtype=np.uint16)
    state = numbers.choice(symbols, size=documents, p=frequent)
    bounds = np.cumsum(FOLLOWERS)[:-1]
    for place in range(length):
        text[:, place] = state
        state = follow[state, np.searchsorted(bounds, numbers.random(documents), side="right")]
    return text.reshape(-1)


def sequences(folder: Path, count: int, length: int, skip: int = 0) -> torch.Tensor:
    """`count` sequences of `length` tokens, one after the other from sequence `skip` on; from the start again at the end."""
    import torch

    text = np.memmap(folder / FILE, dtype="<u2", mode="r")
    wanted = np.arange(skip * length, (skip + count) * length) % len(text)
    return torch.from_numpy(text[wanted].astype(np.int64)).view(count, length)


def batches(
    folder: Path, count: int, rows: int, length: int, device: torch.device, rank: int = 0
) -> list[torch.Tensor]:
    """`count` batches of `rows` sequences, on the device; those of another process are others."""
    found = sequences(folder, count * rows, length, skip=rank * count * rows)
    return [batch.to(device) for batch in found.split(rows)]
