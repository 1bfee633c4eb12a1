#!/usr/bin/env python3
"""Transcribes made-up speech with Whisper: the encoder once, then greedily one token after the other. README.md tells the rest."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_shared"))

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchprobe import give
from workload.devices import dtype_of
from workload.graphs import Captured
from workload.inference import Inference, run
from workload.models.whisper import PROMPT, PUBLIC_PARAMETERS, SHAPES, Whisper
from workload.options import parse, parser
from workload.speech import utterances

SIZES = {
    "tiny": {"model": "nano", "batch_size": 4, "seconds": 2, "tokens": 16},
    "small": {"model": "tiny", "batch_size": 1, "seconds": 30, "tokens": 32},
    "full": {"model": "large-v3", "batch_size": 16, "seconds": 30, "tokens": 128, "precision": "bf16"},
}
BATCHES = 4
# Not cuDNN's, which torch takes first on an H200: it plans anew for each length, and its tokens differ from time to time.
KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


def options(argv: list[str] | None = None) -> Any:
    found = parser("Transcribes made-up speech with Whisper.", SIZES)
    found.add_argument("--model", choices=list(SHAPES), help="which Whisper  [by size]")
    found.add_argument("--seconds", type=int, help="of audio in one window, at most 30  [by size]")
    found.add_argument("--tokens", type=int, help="decoded for each window, whatever they are  [by size]")
    found.add_argument("--eager", action="store_true", help="on a GPU: kernels launched one by one, not as CUDA graphs")
    given = parse(found, SIZES, argv)
    shape = SHAPES[given.model]
    if not 1 <= given.seconds <= 30 or not 1 <= given.tokens <= shape.text_context - PROMPT:
        found.error(f"--seconds is 1 to 30, --tokens 1 to {shape.text_context - PROMPT}")
    return given


def transcribe(model: Whisper, mel: Tensor, tokens: int, logits: list[Tensor] | None = None) -> Tensor:
    """`tokens` more after the prompt, each the likeliest one. The logits are put into `logits`, if that is given."""
    heard = model.decoder.hear(model.encoder(mel))
    cache = model.decoder.empty_cache(len(mel), PROMPT + tokens)
    chosen = prompt(model, len(mel))
    said = []
    position = 0
    for _ in range(tokens):
        found = model.decoder(chosen, heard, cache, position, last=True)
        position += chosen.shape[1]
        chosen = found.argmax(-1)
        said.append(chosen)
        if logits is not None:
            logits.append(found)
    return torch.cat(said, dim=1)


def prompt(model: Whisper, batch: int) -> Tensor:
    """The last tokens of the vocabulary stand for the special ones."""
    last = model.shape.vocabulary
    return torch.arange(last - PROMPT, last, device=model.decoder.tokens.weight.device).expand(batch, -1)


def same_without_cache(model: Whisper, mel: Tensor, tokens: int) -> bool:
    """Whether the logits of every step are those of the whole text gone through at once, but for rounding."""
    steps: list[Tensor] = []
    said = transcribe(model, mel, tokens, steps)
    text = torch.cat([prompt(model, len(mel)), said[:, :-1]], dim=1)
    whole = model(mel, text)[:, PROMPT - 1 :].float()
    stepwise = torch.cat(steps, dim=1).float()
    rounding = {torch.float32: 1e-3, torch.float16: 1e-2, torch.bfloat16: 5e-2}[steps[0].dtype]
    return bool((whole - stepwise).abs().max() <= rounding * whole.abs().max())


def build(given: Any, device: torch.device) -> Inference:
    shape = SHAPES[given.model]
    dtype = dtype_of(given.precision)  # of the weights too, as models are served
    with device:
        model = Whisper(shape).to(dtype)
    graphs = device.type == "cuda" and not given.eager and not given.check
    if given.compile:
        model.encoder.compile()
        model.decoder.compile(dynamic=True)
    made = utterances(shape, given.batch_size, given.seconds, given.tokens, BATCHES, given.seed)
    batches = [mel.to(device, dtype) for mel, _ in made]

    def read(model: Any, mel: Tensor) -> Tensor:
        with torch.autocast(device.type, enabled=False), sdpa_kernel(KERNELS):
            return transcribe(model, mel, given.tokens).cpu()  # a transcript is read

    heard = batches[0].clone()
    captured: list[Captured] = []  # of a whole transcription: it is the same for every batch

    def replayed(model: Any, mel: Tensor) -> Tensor:
        if not captured:
            with torch.autocast(device.type, enabled=False), sdpa_kernel(KERNELS):
                captured.append(Captured(lambda: transcribe(model, heard, given.tokens)))
        heard.copy_(mel)
        return captured[0].replay().cpu()

    def answer(model: Any, mel: Tensor) -> Tensor:
        begin = perf_counter()
        said = replayed(model, mel) if graphs else read(model, mel)
        give(tokens_per_second=said.numel() / (perf_counter() - begin))
        return said

    def right(_: Tensor) -> bool:
        with sdpa_kernel(KERNELS):
            return same_without_cache(model, batches[0], given.tokens)

    return Inference(
        model=model,
        batches=batches,
        answer=answer,
        items=given.batch_size * given.seconds,
        unit="audio seconds",
        flops_per_item=shape.transcription_flops(given.seconds, given.tokens) / given.seconds,
        parameters=PUBLIC_PARAMETERS.get(given.model, shape.parameters),
        right=right,
        read=read,
    )


if __name__ == "__main__":
    sys.exit(run(options(), build))
