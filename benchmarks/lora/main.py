"""Fine-tunes a frozen model shaped as Llama through adapters of low rank (LoRA). Items are tokens."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_shared"))

from adapters import TARGETS, adapt, trainable_parameters, training_flops

from workload import tokens, training
from workload.devices import autocast, dtype_of, rank
from workload.models.language.attention import KERNELS, build, counting, use_kernel
from workload.models.language.decoder import Decoder
from workload.models.language.shapes import LLAMAS, decoder_parameters, published, shape_of
from workload.options import data_folder, parse, parser

NAME = "lora"
BATCHES = 8  # gone through again and again
SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"batch_size": 8, "sequence_length": 64, "precision": "fp32", "weights": "fp32", "rate": 1e-2},
    "small": {"batch_size": 4, "sequence_length": 256, "precision": "fp32", "weights": "fp32", "rate": 3e-3},
    "full": {"batch_size": 8, "sequence_length": 1024, "precision": "bf16", "weights": "bf16", "rate": 1e-3},
}


def options_of(argv: list[str] | None = None) -> Any:
    found = parser(__doc__, SIZES)
    found.add_argument("--model", choices=LLAMAS, default="llama-1b", help="the shape at full size  [llama-1b]")
    found.add_argument("--sequence-length", type=int, help="tokens of one sequence  [by size]")
    found.add_argument("--rank", type=int, default=16, help="of the adapters  [16]")
    found.add_argument("--alpha", type=float, default=32.0, help="adapters count alpha ÷ rank  [32]")
    found.add_argument("--targets", default="all", help=f"all, or some of {','.join(TARGETS)}  [all]")
    found.add_argument("--attention", choices=KERNELS, default="sdpa", help="the kernel; sdpa: torch chooses")
    found.add_argument("--checkpointing", action="store_true", help="compute activations again in the backward pass")
    found.add_argument("--weights", choices=["fp32", "bf16"], help="what the frozen ones are kept in  [by size]")
    found.add_argument("--rate", type=float, help="the learning rate  [by size]")
    options = parse(found, SIZES, argv)
    options.targets = TARGETS if options.targets == "all" else tuple(options.targets.split(","))
    unknown = set(options.targets) - set(TARGETS)
    if unknown:
        found.error(f"--targets: no matrix is called {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    if options.weights == "bf16" and options.precision != "bf16":
        found.error("--weights bf16 needs --precision bf16")
    return options


def loss(model: nn.Module, batch: Tensor) -> Tensor:
    """How well each token is foretold from those before it."""
    scores = model(batch[:, :-1])
    return functional.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())


def make(options: Any, device: torch.device) -> training.Training:
    use_kernel(options.attention)
    shape = shape_of(options.model, options.size)
    model = build(lambda: Decoder(shape, options.checkpointing), device, dtype_of(options.weights))
    adapt(model, options.targets, options.rank, options.alpha)
    trainable = trainable_parameters(shape, options.targets, options.rank)
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
        flops_per_item=training_flops(shape, options.sequence_length, options.targets, options.rank),
        parameters=(published(options.model, options.size) or decoder_parameters(shape)) + trainable,
        trainable=trainable,
        optimizer=lambda found: torch.optim.AdamW(found, lr=options.rate, fused=device.type == "cuda"),
        counted=counted,
        counted_items=options.sequence_length,
    )


if __name__ == "__main__":
    sys.exit(training.run(options_of(), make))
