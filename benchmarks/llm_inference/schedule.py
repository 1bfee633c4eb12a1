"""Continuous batching: which requests run together, from one step of the engine to the next. Knows no torch.

`concurrency` clients each send a request, wait for all of its answer, and send the next. A running batch has so many slots.
As soon as the answer in a slot is complete, the request that waited longest is put there: its prompt is read in the same
step in which the others get their next token, and from the next step on it is one of them.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import cycle

ROUND = 64  # so many tokens of the cache are looked at, or a multiple: few different shapes


@dataclass
class Request:
    """One question with the length that its answer will have. `arrived`: on the clock of the schedule."""

    number: int
    prompt: int  # tokens
    answer: int  # tokens
    arrived: float = 0.0
    slot: int = -1
    tokens: list[int] = field(default_factory=list)  # of the answer, as far as it is known

    @property
    def length(self) -> int:
        """Tokens of it that are in the cache: all but the newest, which is put there when the next is computed."""
        return self.prompt + max(0, len(self.tokens) - 1)

    @property
    def complete(self) -> bool:
        return len(self.tokens) >= self.answer


@dataclass
class Plan:
    """One step: prompts to read, and running requests that get their next token. `seen`: how much of the cache these need."""

    began: float
    admitted: list[Request]
    running: list[Request]
    seen: int

    @property
    def tokens(self) -> int:
        """That come out of it."""
        return len(self.admitted) + len(self.running)


def requests(count: int, prompt: int, answer: int, seed: int) -> list[Request]:
    """`count` requests with prompts and answers of a quarter of those lengths to all of them."""
    numbers = random.Random(seed)
    return [
        Request(number, numbers.randint(max(1, prompt // 4), prompt), numbers.randint(max(2, answer // 4), answer))
        for number in range(count)
    ]


class Schedule:
    """Clients, the queue, and the slots. The requests are sent again and again."""

    def __init__(
        self, sent: list[Request], slots: int, concurrency: int, longest: int, clock: Callable[[], float]
    ) -> None:
        self._sent: Iterator[Request] = cycle(sent)
        self._slots: list[Request | None] = [None] * min(slots, concurrency)
        self._waiting: deque[Request] = deque()
        self._longest = longest
        self._clock = clock
        self.completed: list[Request] = []  # in the last step
        for _ in range(concurrency):
            self._send()

    @property
    def rows(self) -> int:
        """Of the batch: no more than there can be requests."""
        return len(self._slots)

    def plans(self) -> Iterator[Plan]:
        """Without end. Each must have been carried out (`deliver`, for every request in it) before the next is asked for."""
        while True:
            began = self._clock()
            running = [request for request in self._slots if request is not None]
            admitted = []
            for slot, request in enumerate(self._slots):
                if request is None and self._waiting:
                    admitted.append(self._waiting.popleft())
                    admitted[-1].slot = slot
                    self._slots[slot] = admitted[-1]
            yield Plan(began, admitted, running, self._seen(running))
            self._clear()

    def deliver(self, request: Request, token: int) -> None:
        """The next token of its answer."""
        request.tokens.append(token)

    def _seen(self, running: list[Request]) -> int:
        needed = max((request.length + 1 for request in running), default=0)
        return min(self._longest, -(-needed // ROUND) * ROUND)

    def _clear(self) -> None:
        """Those whose answer is complete leave, and their clients send the next request."""
        self.completed = [request for request in self._slots if request is not None and request.complete]
        for request in self.completed:
            self._slots[request.slot] = None
            self._send()

    def _send(self) -> None:
        template = next(self._sent)
        self._waiting.append(Request(template.number, template.prompt, template.answer, self._clock()))
