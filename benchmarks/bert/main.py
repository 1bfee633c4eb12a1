"""Trains BERT to say which tokens were hidden in a sequence. Items are sequences."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_shared"))

from workload import tokens, training
from workload.devices import autocast, rank
from workload.models.language import arithmetic
from workload.models.language.attention import KERNELS, build, counting, use_kernel
from workload.models.language.encoder import MaskedLanguageModel
from workload.models.language.shapes import encoder_parameters, published, shape_of
from workload.options import data_folder, parse, parser

NAME = "bert"
BATCHES = 8  # gone through again and again
HIDDEN = 0.15  # of the tokens: 8 of 10 are masked, one is another token, one stays
CLS, SEP, MASK, FIRST = 101, 102, 103, 104  # as in the public vocabulary; ours begins at FIRST
SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"batch_size": 8, "sequence_length": 64, "precision": "fp32", "rate": 3e-3},
    "small": {"batch_size": 4, "sequence_length": 256, "precision": "fp32", "rate": 1e-3},
    "full": {"batch_size": 64, "sequence_length": 512, "precision": "bf16", "rate": 1e-4},
}


class Batch(NamedTuple):
    """Sequences (rows, length) with hidden tokens; where those are, (rows, hidden), and what stood there."""

    tokens: Tensor
    places: Tensor
    hidden: Tensor


def options_of(argv: list[str] | None = None) -> Any:
    found = parser(__doc__, SIZES)
    found.add_argument(
        "--model", choices=["bert-base", "bert-large"], default="bert-base", help="the shape at full size"
    )
    found.add_argument("--sequence-length", type=int, help="tokens of one sequence  [by size]")
    found.add_argument(
        "--scores", choices=["all", "hidden"], default="all", help="the places put through the head  [all]"
    )
    found.add_argument("--attention", choices=KERNELS, default="sdpa", help="the kernel; sdpa: torch chooses")
    found.add_argument("--dropout", type=float, default=0.1, help="as the public model is trained  [0.1]")
    found.add_argument("--rate", type=float, help="the learning rate  [by size]")
    options = parse(found, SIZES, argv)
    longest = shape_of(options.model, options.size).positions
    if not 4 <= options.sequence_length <= longest:
        found.error(f"--sequence-length {options.sequence_length}: from 4 to {longest} at size {options.size}")
    return options


def hide(text: Tensor, different: int, numbers: torch.Generator) -> Batch:
    """`text` (rows, length) as the model sees it: between [CLS] and [SEP], with some of its tokens hidden."""
    rows, length = text.shape
    count = predictions(length + 2)
    places = 1 + torch.rand(rows, length, generator=numbers).argsort(1)[:, :count]
    whole = torch.full((rows, length + 2), CLS)
    whole[:, 1:-1], whole[:, -1] = text + FIRST, SEP
    hidden = whole.gather(1, places)
    lot = torch.rand(rows, count, generator=numbers)
    others = torch.randint(FIRST, FIRST + different, (rows, count), generator=numbers)
    shown = torch.where(lot < 0.8, torch.full_like(hidden, MASK), torch.where(lot < 0.9, others, hidden))
    return Batch(whole.scatter(1, places, shown), places, hidden)


def predictions(length: int) -> int:
    return max(1, round(HIDDEN * length))


def loss_at_all(model: nn.Module, batch: Batch) -> Tensor:
    """Scores at every place, as BertForMaskedLM computes them; those of hidden tokens count."""
    wanted = torch.full_like(batch.tokens, -100).scatter(1, batch.places, batch.hidden)
    return functional.cross_entropy(model(batch.tokens).flatten(0, 1), wanted.flatten())


def loss_at_hidden(model: nn.Module, batch: Batch) -> Tensor:
    return functional.cross_entropy(model(batch.tokens, batch.places).flatten(0, 1), batch.hidden.flatten())


def make(options: Any, device: torch.device) -> training.Training:
    use_kernel(options.attention)
    shape = shape_of(options.model, options.size)
    model = build(lambda: MaskedLanguageModel(shape, options.dropout), device)
    folder = tokens.prepare(data_folder(options, NAME), options.size)
    rows, length = options.batch_size, options.sequence_length
    numbers = torch.Generator().manual_seed(options.seed + rank())
    texts = tokens.batches(folder, BATCHES, rows, length - 2, torch.device("cpu"), rank())
    batches = [hide(text, tokens.SIZES[options.size][1], numbers) for text in texts]
    loss = loss_at_all if options.scores == "all" else loss_at_hidden

    def counted(model: nn.Module, batch: Batch) -> Tensor:
        with counting(), autocast(device, options.precision):
            return loss(model, Batch(*(part[:1] for part in batch)))

    return training.Training(
        model=model,
        batches=[Batch(*(part.to(device) for part in batch)) for batch in batches],
        loss=loss,
        items=rows,
        unit="sequences",
        flops_per_item=arithmetic.masked_training(
            shape, length, length if options.scores == "all" else predictions(length)
        ),
        parameters=published(options.model, options.size) or encoder_parameters(shape, masked_head=True),
        optimizer=lambda found: torch.optim.AdamW(found, lr=options.rate, fused=device.type == "cuda"),
        counted=counted,
        counted_items=1,
    )


if __name__ == "__main__":
    sys.exit(training.run(options_of(), make))
