"""Whether it computes what it claims: parameters, arithmetic, and the same tokens as without a cache."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import modes
import torch
from engine import Engine, likeliest_without_cache
from torch import nn

from workload import tokens
from workload.claims import Claim, conclude, counted_flops, parameter_count
from workload.models.language import arithmetic
from workload.models.language.attention import counting
from workload.models.language.decoder import Decoder
from workload.models.language.shapes import decoder_parameters, published
from workload.moved import Reads

ROWS, COMPARED = 2, 12  # sequences, and tokens of each
SERVED, TURNS = 4, 3  # requests whose answers are compared, and after how many turns: others had their slots before
COUNTED = 2  # turns of serving whose arithmetic is counted


def check(options: Any, model: Decoder, text: Path) -> int:
    claims = [
        Claim(
            "parameters",
            published(options.model, options.size) or decoder_parameters(model.shape),
            parameter_count(model),
            0.0,
        )
    ]
    with torch.inference_mode():
        for name in ("prefill", "decode", "serve"):
            claims.append(arithmetic_claim(name, options, model, text))
        claims.append(weights_claim(options, model, text))
        stir(model)
        claims.append(cache_claim(options, model, text))
        claims.append(serving_claim(options, model, text))
    return conclude(claims)


def stir(model: Decoder) -> None:
    """Larger weights. A model as it begins repeats its last token, whatever came before, and hides every fault of a cache."""
    for block in model.blocks:
        for part in block.modules():
            if isinstance(part, nn.Linear):
                nn.init.normal_(part.weight, std=2 * part.in_features**-0.5)


def arithmetic_claim(name: str, options: Any, model: Decoder, text: Path) -> Claim:
    """The formula for some steps against what torch counts in them."""
    mode = getattr(modes, name)(options, model, text)
    claimed = counted = items = 0.0
    for step in islice(mode.steps, mode.round or COUNTED):
        claimed, items = claimed + mode.flops(step), items + mode.items(step)
        with counting():
            counted += counted_flops(lambda step=step: mode.do(step))
    return Claim(f"FLOPs per item, {name}", claimed / items, counted / items)


def weights_claim(options: Any, model: Decoder, text: Path) -> Claim:
    """What a pass over one token of each row reads of the weights, against what its operators are seen to read."""
    rows = options.batch_size
    engine = Engine(model, rows, 2)
    prompts = tokens.batches(text, 1, rows, 2, engine.device)[0]
    reads = Reads(model)
    with reads:
        engine.prefill(prompts[:, :1])
    different = prompts[:, 0].unique().numel()
    claimed = arithmetic.weights_read(model.shape, different) * model.tokens.weight.itemsize
    return Claim("bytes of weights in a pass", claimed, reads.bytes)


def cache_claim(options: Any, model: Decoder, text: Path) -> Claim:
    """Tokens that are generated with the cache, against those found by reading all of the text anew."""
    count = min(COMPARED, options.answer_length)
    prompts = tokens.batches(text, 1, ROWS, options.prompt_length, model.tokens.weight.device)[0]
    engine = Engine(model, ROWS, options.prompt_length + count)
    found = [engine.prefill(prompts)]
    for place in range(options.prompt_length, options.prompt_length + count - 1):
        found.append(engine.decode(found[-1], place, place + 1))
    with_cache = torch.stack(found, 1).tolist()
    same = sum(likeliest_without_cache(model, *pair) for pair in zip(prompts, with_cache, strict=True))
    return Claim("tokens with the cache that are the same without", ROWS * count, same, 0.0)


def serving_claim(options: Any, model: Decoder, text: Path) -> Claim:
    """Answers from slots that others use at the same time and used before, against each request's alone."""
    schedule = modes.schedule_of(options)
    server = modes.Server(model, schedule, options, text)
    turns = list(islice(schedule.turns(), TURNS))
    for turn in turns:
        server.do(turn)
    compared = [request for each in turns[-1] for request in each.completed][:SERVED]
    same = sum(likeliest_without_cache(model, server.prompt(request), request.tokens) for request in compared)
    return Claim("tokens of served requests that are the same alone", sum(r.answer for r in compared), same, 0.0)
