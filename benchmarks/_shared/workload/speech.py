"""Speech that nobody said: every word is a spectrum of its own, sounding for its share of the window, with some noise."""

from __future__ import annotations

import torch
from torch import Tensor

from workload.models.whisper import FRAMES_PER_SECOND, Shape

WORDS = 64


def utterances(
    shape: Shape, batch: int, seconds: int, tokens: int, count: int, seed: int
) -> list[tuple[Tensor, Tensor]]:
    """`count` batches of log-mel spectrograms (batch, mels, frames) and what is said in them (batch, tokens)."""
    sounds = torch.randn(
        WORDS, shape.mels, generator=torch.Generator().manual_seed(0)
    )  # the same language in every process
    generator = torch.Generator().manual_seed(seed)
    frames = seconds * FRAMES_PER_SECOND
    spoken_at = torch.arange(frames) * tokens // frames
    made = []
    for _ in range(count):
        words = torch.randint(WORDS, (batch, tokens), generator=generator)
        mel = sounds[words[:, spoken_at]].transpose(1, 2)
        made.append((0.5 * mel + 0.1 * torch.randn(mel.shape, generator=generator), words + 1))
    return made
