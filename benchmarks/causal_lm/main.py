"""Trains a causal language model shaped as GPT-2 or Llama on tokens of a Markov chain. Items are tokens."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_shared"))

from workload import tokens, training
from workload.devices import autocast, dtype_of, rank
from workload.models.language import arithmetic
from workload.models.language.attention import KERNELS, build, counting, use_kernel
from workload.models.language.decoder import Decoder
from workload.models.language.shapes import DECODERS, decoder_parameters, published, shape_of
from workload.options import data_folder, parse, parser

NAME = "causal_lm"
BATCHES = 8  # gone through again and again
SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"batch_size": 8, "sequence_length": 64, "precision": "fp32", "rate": 3e-3},
    "small": {"batch_size": 4, "sequence_length": 256, "precision": "fp32", "rate": 1e-3},
    "full": {"precision": "bf16", "rate": 1e-4},
}
# Sequences and tokens of each, at full size.
FULL = {
    "gpt2": (16, 1024),
    "gpt2-medium": (16, 1024),
    "gpt2-large": (8, 1024),
    "gpt2-xl": (8, 1024),
    "llama-1b": (8, 2048),
    "llama-3b": (4, 2048),
    "llama-8b": (2, 2048),
}


def options_of(argv: list[str] | None = None) -> Any:
    found = parser(__doc__, SIZES)
    found.add_argument("--model", choices=DECODERS, default="gpt2", help="at sizes below full: its family  [gpt2]")
    found.add_argument("--sequence-length", type=int, help="tokens of one sequence  [by size]")
    found.add_argument("--attention", choices=KERNELS, default="sdpa", help="the kernel; sdpa: torch chooses")
    found.add_argument("--checkpointing", action="store_true", help="compute activations again in the backward pass")
    found.add_argument("--weights", choices=["fp32", "bf16"], default="fp32", help="kept in so many bits  [fp32]")
    found.add_argument("--rate", type=float, help="the learning rate  [by size]")
    options = parse(found, SIZES, argv)
    rows, length = FULL[options.model]
    options.batch_size = options.batch_size or rows
    options.sequence_length = options.sequence_length or length
    longest = shape_of(options.model, options.size).positions
    if options.sequence_length > longest:
        found.error(f"--sequence-length {options.sequence_length}: {longest} is the longest at size {options.size}")
    return options


def loss(model: nn.Module, batch: Tensor) -> Tensor:
    """How well each token is foretold from those before it."""
    scores = model(batch[:, :-1])
    return functional.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())


def make(options: Any, device: torch.device) -> training.Training:
    use_kernel(options.attention)
    shape = shape_of(options.model, options.size)
    weights = dtype_of(options.weights)
    model = build(lambda: Decoder(shape, options.checkpointing), device, weights)
    folder = tokens.prepare(data_folder(options, NAME), options.size)

    def counted(model: Any, batch: Tensor) -> Tensor:
        model.checkpointing = False
        with counting(), autocast(device, options.precision):
            found = loss(model, batch[:1])
        model.checkpointing = options.checkpointing
        return found

    return training.Training(
        model=model,
        batches=tokens.batches(folder, BATCHES, options.batch_size, options.sequence_length + 1, device, rank()),
        loss=loss,
        items=options.batch_size * options.sequence_length,
        unit="tokens",
        flops_per_item=arithmetic.decoder_training(shape, options.sequence_length),
        parameters=published(options.model, options.size) or decoder_parameters(shape),
        optimizer=lambda found: torch.optim.AdamW(found, lr=options.rate, fused=device.type == "cuda"),
        counted=counted,
        counted_items=options.sequence_length,
    )


if __name__ == "__main__":
    sys.exit(training.run(options_of(), make))
