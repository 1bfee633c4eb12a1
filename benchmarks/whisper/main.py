#!/usr/bin/env python3
"""Trains Whisper, the encoder and decoder of speech recognition, on made-up speech. README.md tells the rest."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_shared"))

import torch
import torch.nn.functional as F

from workload.devices import rank
from workload.models.language.attention import counting
from workload.models.whisper import PUBLIC_PARAMETERS, SHAPES, Whisper
from workload.options import parse, parser
from workload.speech import utterances
from workload.training import Training, run

SIZES = {
    "tiny": {"model": "nano", "batch_size": 4, "seconds": 2, "tokens": 16, "learning_rate": 3e-3},
    "small": {"model": "tiny", "batch_size": 2, "seconds": 10, "tokens": 32, "learning_rate": 1e-3},
    "full": {
        "model": "small",
        "batch_size": 32,
        "seconds": 30,
        "tokens": 128,
        "learning_rate": 5e-4,
        "precision": "bf16",
    },
}
BATCHES = 4  # fixed ones, gone through again and again
CHECKED = 8  # windows at most: the attention that can be counted takes much memory


def options(argv: list[str] | None = None) -> Any:
    found = parser("Trains Whisper on made-up speech.", SIZES)
    found.add_argument("--model", choices=list(SHAPES), help="which Whisper  [by size]")
    found.add_argument("--seconds", type=int, help="of audio in one window, at most 30  [by size]")
    found.add_argument("--tokens", type=int, help="of text for one window  [by size]")
    found.add_argument("--learning-rate", type=float, help="[by size]")
    given = parse(found, SIZES, argv)
    context = SHAPES[given.model].text_context
    if not 1 <= given.seconds <= 30 or not 1 <= given.tokens <= context:
        found.error(f"--seconds is 1 to 30, --tokens 1 to {context}")
    if given.check:
        given.batch_size = min(given.batch_size, CHECKED)
    return given


def build(given: Any, device: torch.device) -> Training:
    shape = SHAPES[given.model]
    made = utterances(shape, given.batch_size, given.seconds, given.tokens, BATCHES, given.seed + rank())
    batches = [(mel.to(device), words.to(device)) for mel, words in made]
    with device:
        model = Whisper(shape)

    def loss(model: torch.nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        mel, words = batch
        before = F.pad(words[:, :-1], (1, 0))  # token 0 begins
        return F.cross_entropy(model(mel, before).flatten(0, 1).float(), words.flatten())

    def counted(model: torch.nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        with counting():
            return loss(model, batch)

    return Training(
        model=model,
        batches=batches,
        loss=loss,
        items=given.batch_size * given.seconds,
        unit="audio seconds",
        flops_per_item=shape.training_flops(given.seconds, given.tokens) / given.seconds,
        parameters=PUBLIC_PARAMETERS.get(given.model, shape.parameters),
        optimizer=lambda parameters: torch.optim.AdamW(parameters, lr=given.learning_rate),
        counted=counted,
    )


if __name__ == "__main__":
    sys.exit(run(options(), build))
