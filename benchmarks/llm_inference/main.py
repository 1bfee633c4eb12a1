"""Reads prompts and generates tokens with a language model and its cache, for one batch or for many clients at once."""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_shared"))

import modes
from claims import check

from benchprobe import give, iterate
from workload import tokens
from workload.devices import dtype_of, set_up
from workload.models.language.attention import KERNELS, build, use_kernel
from workload.models.language.decoder import Decoder
from workload.models.language.shapes import DECODERS, shape_of
from workload.options import data_folder, parse, parser

NAME = "llm_inference"
MODES = {"prefill": modes.prefill, "decode": modes.decode, "serve": modes.serve}
SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"batch_size": 4, "prompt_length": 96, "answer_length": 32, "precision": "fp32"},
    "small": {"batch_size": 8, "prompt_length": 192, "answer_length": 64, "precision": "fp32"},
    "full": {"batch_size": 32, "prompt_length": 896, "answer_length": 128, "precision": "bf16"},
}


def options_of(argv: list[str] | None = None) -> Any:
    found = parser(__doc__, SIZES)
    found.add_argument("--mode", choices=list(MODES), default="decode", help="what is measured  [decode]")
    found.add_argument("--model", choices=DECODERS, default="llama-1b", help="at sizes below full: its family")
    found.add_argument("--prompt-length", type=int, help="tokens; of the longest when serving  [by size]")
    found.add_argument("--answer-length", type=int, help="tokens; of the longest when serving  [by size]")
    found.add_argument("--concurrency", type=int, help="clients when serving; --batch-size is the slots  [as many]")
    found.add_argument("--attention", choices=KERNELS, default="sdpa", help="the kernel; sdpa: torch chooses")
    found.add_argument("--eager", action="store_true", help="on a GPU: kernels launched one by one, not as CUDA graphs")
    options = parse(found, SIZES, argv)
    options.graphs = False
    options.concurrency = options.concurrency or options.batch_size
    if options.prompt_length < 1 or options.answer_length < 2:
        found.error("a prompt has 1 token or more, an answer 2 or more")
    length, longest = options.prompt_length + options.answer_length, shape_of(options.model, options.size).positions
    if length > longest:
        found.error(f"a prompt and its answer have {length} tokens: {longest} is the most at size {options.size}")
    return options


def main(argv: list[str] | None = None) -> int:
    options = options_of(argv)
    if options.check:
        options.precision, options.compile = "fp32", False  # the same tokens in two ways: without rounding in between
    device = set_up(options)
    if device.type == "cuda" and options.mode != "prefill" and not options.eager and not options.check:
        options.graphs = True  # or Python is measured, which launches some hundred kernels a token
    use_kernel(options.attention)
    shape = shape_of(options.model, options.size)
    model = build(lambda: Decoder(shape), device, dtype_of(options.precision)).eval()
    text = tokens.prepare(data_folder(options, NAME), options.size)
    if options.check:
        return check(options, model, text)
    mode = MODES[options.mode](options, model, text)
    flops, numbers = modes.per_item(options, mode)
    give(**{f"flops_per_item.{options.precision}": flops, "bytes_per_item": numbers * model.tokens.weight.itemsize})
    with torch.inference_mode():
        for step in iterate("infer", islice(mode.steps, options.steps), batch_size=mode.items, unit="tokens"):
            for measured in mode.do(step):
                give(**measured)
    return 0


if __name__ == "__main__":
    sys.exit(main())
