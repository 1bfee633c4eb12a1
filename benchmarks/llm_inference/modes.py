"""What is measured: reading prompts, generating tokens, or serving clients. Each is a loop of steps with its items."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from engine import Engine
from schedule import Pass, Request, Schedule, all_rounded, requests
from torch import Tensor

from workload import tokens
from workload.models.language import arithmetic
from workload.models.language.decoder import Decoder
from workload.models.language.shapes import Shape

REQUESTS = 256  # different ones, sent again and again


@dataclass
class Mode:
    """`steps` without end; `do` carries one out and returns what was measured in it, in milliseconds.

    `items`: of a step. `flops`: of a step, by formula. `numbers`: that a step must read from memory or write to it.
    `round`: steps after which all is as before; 0: there is no such.
    """

    steps: Iterator[Any]
    do: Callable[[Any], list[dict[str, float]]]
    items: Callable[[Any], int]
    flops: Callable[[Any], float]
    numbers: Callable[[Any], float]
    round: int


def prefill(options: Any, model: Decoder, text: Path) -> Mode:
    """A batch of prompts is read; a step ends when the first tokens of the answers are there."""
    rows, length = options.batch_size, options.prompt_length
    engine = Engine(model, rows, length, options.compile)
    batches = tokens.batches(text, 8, rows, length, engine.device)

    def do(batch: Tensor) -> list[dict[str, float]]:
        began = perf_counter()
        engine.prefill(batch).tolist()  # it is not there before the host has it
        return [{"ttft_ms": 1e3 * (perf_counter() - began)}]

    return Mode(
        steps=cycle(batches),
        do=do,
        items=lambda _: rows * length,
        flops=lambda _: rows * arithmetic.prefill(model.shape, length),
        numbers=lambda _: read_numbers(model.shape, rows * length),
        round=1,
    )


def decode(options: Any, model: Decoder, text: Path) -> Mode:
    """Each step gives one more token to every sequence. After the last one they are cut back to their prompts."""
    rows, prompt, answer = options.batch_size, options.prompt_length, options.answer_length
    engine = Engine(model, rows, prompt + answer, options.compile, options.graphs)
    with torch.inference_mode():
        for place in range(prompt, prompt + answer):
            engine.capture(place, place + 1)
        first = last = engine.fill(tokens.batches(text, 1, rows, prompt, engine.device)[0])
    behind = OnePassBehind(rows) if options.graphs else None
    arrived = perf_counter()

    def do(place: int) -> list[dict[str, float]]:
        nonlocal last, arrived
        before = perf_counter() if behind is None else arrived
        paused = behind is not None and not behind.is_waited_for()
        last = engine.decode(first if place == prompt else last, place, place + 1)
        if behind is None:
            last.tolist()
        else:
            behind.arrive(last)
        arrived = perf_counter()
        return [] if paused else [{"itl_ms": 1e3 * (arrived - before)}]

    def flops(place: int) -> float:
        return rows * arithmetic.decode(model.shape, place + 1)

    return Mode(
        steps=cycle(range(prompt, prompt + answer)),
        do=do,
        items=lambda _: rows,
        flops=flops,
        numbers=lambda place: next_numbers(model.shape, rows, place + 1),
        round=answer,
    )


class OnePassBehind:
    """Brings tokens to the host while the GPU computes the next ones, as servers do, so that it never waits for Python."""

    def __init__(self, rows: int) -> None:
        self._hosts = cycle(torch.zeros(rows, dtype=torch.int64).pin_memory() for _ in range(2))
        self._on_the_way: tuple[Tensor, torch.cuda.Event] | None = None

    def is_waited_for(self) -> bool:
        """False when all tokens have arrived: the loop has just begun, or was interrupted for bookkeeping."""
        return self._on_the_way is not None and not self._on_the_way[1].query()

    def arrive(self, tokens: Tensor) -> None:
        """Sends these, and waits for those of the pass before."""
        host, sent = next(self._hosts), torch.cuda.Event()
        host.copy_(tokens, non_blocking=True)
        sent.record()
        before, self._on_the_way = self._on_the_way, (host, sent)
        if before is not None:
            before[1].synchronize()
            before[0].tolist()


def serve(options: Any, model: Decoder, text: Path) -> Mode:
    """Requests of several clients at once, with continuous batching. A step is a turn of the schedule."""
    schedule = schedule_of(options)
    server = Server(model, schedule, options, text)
    return Mode(
        steps=schedule.turns(),
        do=server.do,
        items=turn_tokens,
        flops=turn_flops(model.shape, schedule),
        numbers=turn_numbers(model.shape, schedule),
        round=0,
    )


def schedule_of(options: Any) -> Schedule:
    sent = requests(REQUESTS, options.prompt_length, options.answer_length, options.seed)
    return Schedule(sent, options.batch_size, options.concurrency, options.prompt_length + options.answer_length)


def turn_tokens(turn: list[Pass]) -> int:
    return sum(each.tokens for each in turn)


def turn_flops(shape: Shape, schedule: Schedule) -> Callable[[list[Pass]], float]:
    """Prompts are read with their padding; the next tokens are computed in all rows, with the keys that the longest needs."""

    def flops(turn: list[Pass]) -> float:
        read = sum(arithmetic.prefill(shape, schedule.read(request)) for each in turn for request in each.admitted)
        return read + sum(schedule.rows * arithmetic.decode(shape, each.seen) for each in turn if each.running)

    return flops


def turn_numbers(shape: Shape, schedule: Schedule) -> Callable[[list[Pass]], float]:
    def numbers(turn: list[Pass]) -> float:
        read = sum(read_numbers(shape, schedule.read(request)) for each in turn for request in each.admitted)
        return read + sum(next_numbers(shape, schedule.rows, each.seen) for each in turn if each.running)

    return numbers


def read_numbers(shape: Shape, tokens: int) -> int:
    """Of a pass that reads prompts: the weights, and what it leaves in the cache."""
    return arithmetic.weights_read(shape, tokens) + arithmetic.kept(shape, tokens)


def next_numbers(shape: Shape, rows: int, seen: int) -> int:
    """Of a pass that computes the next tokens: the weights, and the cache, to which each row adds a token."""
    return arithmetic.weights_read(shape, rows) + arithmetic.kept(shape, rows * seen + rows)


def per_item(options: Any, mode: Mode) -> tuple[float, float]:
    """Arithmetic, and numbers read or written: the mean over a round; when serving, over as many requests as there are
    different ones, of a schedule of their own."""
    if mode.round:
        steps = list(islice(mode.steps, mode.round))  # the loop begins where this did
    else:
        schedule = schedule_of(options)
        steps = list(islice(schedule.turns(), -(-REQUESTS // schedule.rows)))
    items = sum(mode.items(step) for step in steps)
    return sum(mode.flops(step) for step in steps) / items, sum(mode.numbers(step) for step in steps) / items


class Server:
    """Carries out the turns of a schedule."""

    def __init__(self, model: Decoder, schedule: Schedule, options: Any, text: Path) -> None:
        length = options.prompt_length + options.answer_length
        self._engine = Engine(model, schedule.rows, length, options.compile, options.graphs)
        with torch.inference_mode():
            for size in all_rounded(length):
                self._engine.capture(None, size)
                self._engine.capture_read(size)
        self._prompts = tokens.sequences(text, REQUESTS, options.prompt_length).to(self._engine.device)
        self._last = torch.zeros(schedule.rows, dtype=torch.int64, device=self._engine.device)
        self._first = schedule.first
        self._length_of = schedule.read

    def do(self, turn: list[Pass]) -> list[dict[str, float]]:
        began = perf_counter()
        for request in self._first:
            request.arrived = began
        self._first = []
        given: list[dict[str, float]] = []
        for each in turn:
            given += self._read(each.admitted)
            if each.running:
                self._go_on(each)
            now = perf_counter()
            if each.running:
                given.append({"itl_ms": 1e3 * (now - began)})
            for request in each.sent:
                request.arrived = now
            began = now
        return given

    def _read(self, admitted: list[Request]) -> list[dict[str, float]]:
        """Prompts before all else, so that nobody waits for a first token longer than need be."""
        given = []
        for request in admitted:
            first = self._engine.read(self.prompt(request), request.slot, self._length_of(request))
            self._last[request.slot] = first[0]
            request.tokens.append(int(first))
            given.append({"ttft_ms": 1e3 * (perf_counter() - request.arrived)})
        return given

    def _go_on(self, each: Pass) -> None:
        found = self._engine.decode(self._last, each.places, each.seen)
        for request in each.admitted:  # what was computed in their rows is not theirs
            found[request.slot] = self._last[request.slot]
        self._last = found
        delivered = found.tolist()
        for request in each.running:
            request.tokens.append(delivered[request.slot])

    def prompt(self, request: Request) -> Tensor:
        return self._prompts[request.number, : request.prompt]
