"""Turns sentences into vectors of length 1 with an encoder shaped as MiniLM. Items are sentences."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_shared"))

from workload import inference, tokens
from workload.devices import dtype_of
from workload.models.language import arithmetic
from workload.models.language.attention import KERNELS, build, counting, use_kernel
from workload.models.language.encoder import Encoder
from workload.models.language.shapes import encoder_parameters, published, shape_of
from workload.options import data_folder, parse, parser

NAME = "embedding"
MODEL = "minilm-l6"
BATCHES = 8  # gone through again and again
PAD, CLS, SEP, FIRST = 0, 101, 102, 104  # as in the public vocabulary; ours begins at FIRST
SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"batch_size": 16, "sequence_length": 64, "precision": "fp32"},
    "small": {"batch_size": 16, "sequence_length": 128, "precision": "fp32"},
    "full": {"batch_size": 256, "sequence_length": 128, "precision": "bf16"},
}


class Batch(NamedTuple):
    """Sentences (rows, length), filled up with PAD; `real` is false there."""

    tokens: Tensor
    real: Tensor


def options_of(argv: list[str] | None = None) -> Any:
    found = parser(__doc__, SIZES)
    found.add_argument("--sequence-length", type=int, help="tokens that sentences are filled up to  [by size]")
    found.add_argument("--attention", choices=KERNELS, default="sdpa", help="the kernel; sdpa: torch chooses")
    options = parse(found, SIZES, argv)
    longest = shape_of(MODEL, options.size).positions
    if not 4 <= options.sequence_length <= longest:
        found.error(f"--sequence-length {options.sequence_length}: from 4 to {longest} at size {options.size}")
    if options.check:
        options.precision = "fp32"  # the same vectors in two ways: without rounding in between
    return options


def fill_up(text: Tensor, numbers: torch.Generator) -> Batch:
    """`text` (rows, length) as sentences of a quarter of that to all of it, each from [CLS] to [SEP]."""
    rows, length = text.shape
    ends = torch.randint(length // 4, length, (rows, 1), generator=numbers)
    places = torch.arange(length)
    filled = torch.where(places < ends, text + FIRST, torch.where(places == ends, SEP, PAD))
    filled[:, 0] = CLS
    return Batch(filled, places <= ends)


def embed(model: nn.Module, batch: Batch) -> Tensor:
    """The mean of what the encoder makes of the tokens of each sentence, at length 1."""
    real = batch.real
    with torch.autocast(batch.tokens.device.type, enabled=False):  # the weights are of the wanted type already
        states = model(batch.tokens, real[:, None, None]).float()
    total = (states * real[..., None]).sum(1)
    return functional.normalize(total / real.sum(1, keepdim=True), dim=1)


def make(options: Any, device: torch.device) -> inference.Inference:
    use_kernel(options.attention)
    shape = shape_of(MODEL, options.size)
    model = build(lambda: Encoder(shape, pooler=True), device, dtype_of(options.precision))
    folder = tokens.prepare(data_folder(options, NAME), options.size)
    rows, length = options.batch_size, options.sequence_length
    numbers = torch.Generator().manual_seed(options.seed)
    texts = tokens.batches(folder, BATCHES, rows, length, torch.device("cpu"))
    batches = [Batch(*(part.to(device) for part in fill_up(text, numbers))) for text in texts]
    near = 1e-5

    def counted(model: nn.Module, batch: Batch) -> Tensor:
        with counting():
            return embed(model, batch)

    def right(found: Tensor) -> bool:
        """Of length 1, unlike each other, and the same for a sentence alone, that nothing was filled up behind."""
        first = batches[0]
        whole = bool(((found.norm(dim=1) - 1).abs() < near).all())
        unlike = rows == 1 or float(found[0] @ found[1]) < 1 - 10 * near
        for row in range(min(rows, 4)):
            end = int(first.real[row].sum())
            alone = embed(model, Batch(first.tokens[row : row + 1, :end], first.real[row : row + 1, :end]))
            whole = whole and float(alone[0] @ found[row]) > 1 - near
        return whole and unlike

    return inference.Inference(
        model=model,
        batches=batches,
        answer=embed,
        items=rows,
        unit="sentences",
        flops_per_item=length * arithmetic.layers(shape, length),
        parameters=published(MODEL, options.size) or encoder_parameters(shape, pooler=True),
        right=right,
        counted=counted,
    )


if __name__ == "__main__":
    sys.exit(inference.run(options_of(), make))
