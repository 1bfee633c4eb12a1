"""Continuous batching: which requests run together, from one pass of the engine to the next. Knows no torch and no clock.

`concurrency` clients each send a request, wait for all of its answer, and send the next. A running batch has so many slots.
As soon as the answer in a slot is complete, the request that waited longest is put there: its prompt is read in the same
pass in which the others get their next token, and from the next pass on it is one of them.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle

ROUND = 64  # prompts are read, and the cache is looked at, in multiples of so many tokens: few different shapes


def rounded(tokens: int, longest: int) -> int:
    return min(longest, -(-tokens // ROUND) * ROUND)


def all_rounded(longest: int) -> list[int]:
    """Whatever `rounded` can give, from 1 token on."""
    return [min(longest, tokens) for tokens in range(ROUND, longest + ROUND, ROUND)]


@dataclass
class Request:
    """One question with the length that its answer will have."""

    number: int
    prompt: int  # tokens
    answer: int  # tokens
    slot: int = -1
    planned: int = 0  # tokens of the answer that passes were planned for
    arrived: float = 0.0  # on the clock of the server
    tokens: list[int] = field(default_factory=list)  # of the answer


@dataclass
class Pass:
    """Prompts to read, and requests that get their next token. `places`: where each row's next token goes, in the cache;
    `seen`: how much of the cache is looked at; `sent`: by the clients whose answers are complete after it."""

    admitted: list[Request]
    running: list[Request]
    places: list[int]
    seen: int
    completed: list[Request] = field(default_factory=list)
    sent: list[Request] = field(default_factory=list)

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

    def __init__(self, requests: list[Request], slots: int, concurrency: int, longest: int) -> None:
        self._templates: Iterator[Request] = cycle(requests)
        self._slots: list[Request | None] = [None] * min(slots, concurrency)
        self._waiting: deque[Request] = deque()
        self.longest = longest
        self.first = [self._send() for _ in range(concurrency)]  # before anything runs

    def read(self, request: Request) -> int:
        """Tokens of its prompt, padding included."""
        return rounded(request.prompt, self.longest)

    @property
    def rows(self) -> int:
        """Of the batch: no more than there can be requests."""
        return len(self._slots)

    def turns(self) -> Iterator[list[Pass]]:
        """Without end: passes until as many answers are complete as there are rows. So prompts are read in all turns alike."""
        turn: list[Pass] = []
        for planned in self.passes():
            turn.append(planned)
            if sum(len(each.completed) for each in turn) >= self.rows:
                yield turn
                turn = []

    def passes(self) -> Iterator[Pass]:
        """Without end."""
        while True:
            running = [request for request in self._slots if request is not None]
            admitted = self._admit()
            places = [0] * self.rows
            for request in admitted:  # nothing of theirs is computed here, and the next pass writes there again
                places[request.slot] = request.prompt
            for request in running:  # all is in the cache but the newest token, which is the input now
                places[request.slot] = request.prompt + request.planned - 1
            needed = max((places[request.slot] + 1 for request in running), default=0)
            planned = Pass(admitted, running, places, rounded(needed, self.longest))
            for request in (*admitted, *running):
                request.planned += 1
                if request.planned == request.answer:
                    self._slots[request.slot] = None
                    planned.completed.append(request)
                    planned.sent.append(self._send())
            yield planned

    def _admit(self) -> list[Request]:
        admitted = []
        for slot, request in enumerate(self._slots):
            if request is None and self._waiting:
                admitted.append(self._waiting.popleft())
                admitted[-1].slot = slot
                self._slots[slot] = admitted[-1]
        return admitted

    def _send(self) -> Request:
        template = next(self._templates)
        self._waiting.append(Request(template.number, template.prompt, template.answer))
        return self._waiting[-1]
