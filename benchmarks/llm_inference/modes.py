"""What is measured: reading prompts, generating tokens, or serving clients. Each is a loop of steps with its items."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from time import perf_counter
from typing import Any

import torch
from engine import Engine
from schedule import Plan, Request, Schedule, requests
from torch import Tensor

from workload import tokens
from workload.models.language import arithmetic
from workload.models.language.decoder import Decoder
from workload.models.language.shapes import Shape

REQUESTS = 256  # different ones, sent again and again


@dataclass
class Mode:
    """`steps` without end; `do` carries one out and returns what was measured in it, in milliseconds.

    `items`: of a step. `flops`: of a step, by formula. `round`: steps after which all is as before; 0: there is no such.
    """

    steps: Iterator[Any]
    do: Callable[[Any], list[dict[str, float]]]
    items: Callable[[Any], int]
    flops: Callable[[Any], float]
    round: int


def prefill(options: Any, model: Decoder, text: Any) -> Mode:
    """A batch of prompts is read; a step ends when the first tokens of the answers are there."""
    rows, length = options.batch_size, options.prompt_length
    engine = Engine(model, rows, length, options.compile)
    batches = tokens.batches(text, 8, rows, length, engine.device)

    def do(batch: Tensor) -> list[dict[str, float]]:
        began = perf_counter()
        engine.prefill(batch).tolist()  # it is not there before the host has it
        return [{"ttft_ms": 1e3 * (perf_counter() - began)}]

    return Mode(
        cycle(batches), do, lambda _: rows * length, lambda _: rows * arithmetic.prefill(model.shape, length), 1
    )


def decode(options: Any, model: Decoder, text: Any) -> Mode:
    """Each step gives one more token to every sequence. After the last one they are cut back to their prompts."""
    rows, prompt, answer = options.batch_size, options.prompt_length, options.answer_length
    engine = Engine(model, rows, prompt + answer, options.compile)
    with torch.inference_mode():
        first = last = engine.fill(tokens.batches(text, 1, rows, prompt, engine.device)[0])

    def do(place: int) -> list[dict[str, float]]:
        nonlocal last
        began = perf_counter()
        last = engine.decode(first if place == prompt else last, place, place + 1)
        last.tolist()
        return [{"itl_ms": 1e3 * (perf_counter() - began)}]

    def flops(place: int) -> float:
        return rows * arithmetic.decode(model.shape, place + 1)

    return Mode(cycle(range(prompt, prompt + answer)), do, lambda _: rows, flops, answer)


def serve(options: Any, model: Decoder, text: Any) -> Mode:
    """Requests of several clients at once, with continuous batching."""
    schedule = schedule_of(options, perf_counter)
    server = Server(model, schedule, options, text)
    return Mode(schedule.plans(), server.do, lambda plan: plan.tokens, flops_of(model.shape, schedule.rows), 0)


def schedule_of(options: Any, clock: Callable[[], float]) -> Schedule:
    sent = requests(REQUESTS, options.prompt_length, options.answer_length, options.seed)
    return Schedule(sent, options.batch_size, options.concurrency, options.prompt_length + options.answer_length, clock)


def flops_of(shape: Shape, rows: int) -> Callable[[Plan], float]:
    """Prompts are read as long as they are; the next tokens are computed in all rows, with the keys that the longest needs."""

    def flops(plan: Plan) -> float:
        read = sum(arithmetic.prefill(shape, request.prompt) for request in plan.admitted)
        return read + (rows * arithmetic.decode(shape, plan.seen) if plan.running else 0.0)

    return flops


def flops_per_item(options: Any, mode: Mode, shape: Shape) -> float:
    if not mode.round:
        return mean_flops(options, shape)
    steps = list(islice(mode.steps, mode.round))  # a whole round: the loop begins where this did
    return sum(mode.flops(step) for step in steps) / sum(mode.items(step) for step in steps)


def mean_flops(options: Any, shape: Shape) -> float:
    """Per token that comes out, over as many requests as there are different ones: the schedule is gone through alone."""
    schedule = schedule_of(options, lambda: 0.0)
    flops = flops_of(shape, schedule.rows)
    total = items = done = 0.0
    for plan in schedule.plans():
        done += len(schedule.completed)
        if done >= REQUESTS:
            break
        total, items = total + flops(plan), items + plan.tokens
        for request in plan.admitted + plan.running:
            schedule.deliver(request, 0)
    return total / items


class Server:
    """Carries out the plans of a schedule."""

    def __init__(self, model: Decoder, schedule: Schedule, options: Any, text: Any) -> None:
        self._schedule = schedule
        self._engine = Engine(model, schedule.rows, options.prompt_length + options.answer_length, options.compile)
        self.prompts = tokens.sequences(text, REQUESTS, options.prompt_length).to(self._engine.device)
        self._last = torch.zeros(schedule.rows, dtype=torch.int64, device=self._engine.device)

    def do(self, plan: Plan) -> list[dict[str, float]]:
        """Prompts first, so that nobody waits for a first token longer than need be; then the next token of the others."""
        given = []
        for request in plan.admitted:
            first = self._engine.prefill(self.prompt(request)[None], request.slot)
            self._last[request.slot] = first[0]
            self._schedule.deliver(request, int(first))
            given.append({"ttft_ms": 1e3 * (perf_counter() - request.arrived)})
        if plan.running:
            found = self._engine.decode(self._last, self._places(plan), plan.seen)
            for request in plan.admitted:  # what was computed in their rows is not theirs
                found[request.slot] = self._last[request.slot]
            self._last = found
            delivered = found.tolist()
            for request in plan.running:
                self._schedule.deliver(request, delivered[request.slot])
            given.append({"itl_ms": 1e3 * (perf_counter() - plan.began)})
        return given

    def prompt(self, request: Request) -> Tensor:
        return self.prompts[request.number, : request.prompt]

    def _places(self, plan: Plan) -> list[int]:
        """Where the next token of each row goes. What is written for a row that only begins is overwritten in the next step."""
        places = [0] * self._schedule.rows
        for request in plan.running:
            places[request.slot] = request.length
        for request in plan.admitted:
            places[request.slot] = request.prompt
        return places
