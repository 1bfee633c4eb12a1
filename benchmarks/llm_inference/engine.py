"""The model with its cache: reads prompts, and gives one more token to every row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from workload.graphs import Captured
from workload.models.language.cache import Cache, Decode, DecodeInGraph, Prefill, PrefillSlot
from workload.models.language.decoder import Decoder, Memory

PREFILLED_AT_ONCE = 16_384  # tokens; more prompts are read in several passes
TIE = 1e-4  # in standard deviations of the scores


class Engine:
    """`rows` sequences of up to `length` tokens. The likeliest token is always the next one."""

    def __init__(self, model: Decoder, rows: int, length: int, compiled: bool = False, graphs: bool = False) -> None:
        """`graphs`: passes that give one more token are CUDA graphs, once `capture` has been called for them."""
        weights = model.tokens.weight
        self._model: Any = torch.compile(model, dynamic=True) if compiled else model
        self.device = weights.device
        self.cache = Cache(model.shape, rows, length, weights.device, weights.dtype)
        self._places = torch.arange(length, device=weights.device)
        self._graphs: dict[tuple[int | None, int], Captured] | None = {} if graphs else None
        self._pool = torch.cuda.graph_pool_handle() if graphs else None
        for block in model.blocks if graphs else ():
            block.prepare_for_one_token()
        self._reads: dict[int, Captured] = {}
        self._last = torch.zeros(rows, dtype=torch.int64, device=weights.device)  # what graphs read
        self._where = torch.zeros(rows, dtype=torch.int64, device=weights.device)
        self._prompt = torch.zeros(1, length, dtype=torch.int64, device=weights.device)
        self._slot, self._end = torch.zeros(2, 1, dtype=torch.int64, device=weights.device)

    def prefill(self, prompts: Tensor, first: int = 0) -> Tensor:
        """Reads prompts (some, length) into the rows from `first` on; returns the first token of each answer."""
        scores = self._model(prompts, None, Prefill(self.cache, first), True)
        found: Tensor = scores.argmax(-1)
        return found

    def fill(self, prompts: Tensor) -> Tensor:
        """`prefill` of many, in parts."""
        rows = max(1, PREFILLED_AT_ONCE // prompts.shape[1])
        parts = prompts.split(rows)
        return torch.cat([self.prefill(part, place * rows) for place, part in enumerate(parts)])

    def capture_read(self, length: int) -> None:
        """Prepares `read` for prompts padded to `length`. Writes to the cache."""
        if self._graphs is not None:
            self._reads[length] = Captured(lambda: self._read(length), self._pool)

    def read(self, prompt: Tensor, slot: int, length: int) -> Tensor:
        """Reads a prompt (tokens), padded to `length`, into the row `slot`; returns the first token of its answer. The cache after
        the prompt is written again before it is looked at."""
        self._prompt[0, : len(prompt)] = prompt
        self._slot.fill_(slot)
        self._end.fill_(len(prompt) - 1)
        captured = self._reads.get(length)
        return self._read(length) if captured is None else captured.replay().clone()

    def _read(self, length: int) -> Tensor:
        scores = self._model(self._prompt[:, :length], None, PrefillSlot(self.cache, self._slot), self._end)
        found: Tensor = scores.argmax(-1)
        return found

    def capture(self, place: int | None, seen: int) -> None:
        """Prepares passes in which all rows stand at `place`, or wherever they are, for as many tokens `seen`. Writes to the
        cache, so prompts are read after it."""
        if self._graphs is not None:
            memory = None if place is None else DecodeInGraph(self.cache, place)
            self._graphs[place, seen] = Captured(lambda: self._next(self._last, place, seen, memory), self._pool)

    def decode(self, last: Tensor, places: Sequence[int] | int, seen: int) -> Tensor:
        """The token after `last` (rows), which stand at `places`: of each row, or one for all of them."""
        place = places if isinstance(places, int) else None
        if not isinstance(places, int):
            self._where.copy_(torch.tensor(places))
        captured = None if self._graphs is None else self._graphs.get((place, seen))
        if captured is None:
            return self._next(last, place, seen)
        self._last.copy_(last)
        return captured.replay().clone()

    def _next(self, last: Tensor, place: int | None, seen: int, memory: Memory | None = None) -> Tensor:
        """`place`: of all rows; None: each row's, in `_where`."""
        if place is not None:
            where, mask = self._places[place].expand(len(last)), None
        else:
            where = self._where
            mask = (self._places[:seen] <= where[:, None])[:, None, None]
        memory = memory or Decode(self.cache, where, seen, mask)
        scores = self._model(last[:, None], where[:, None], memory, True)
        found: Tensor = scores.argmax(-1)
        return found


def likeliest_without_cache(model: Decoder, prompt: Tensor, answer: list[int]) -> int:
    """How many tokens of an answer are the likeliest ones, if all of the text before them is read anew.

    If that is so for all of them, the answer is the one that is found without a cache. A tie counts as found.
    """
    found = torch.tensor(answer, device=prompt.device)
    scores = model(torch.cat((prompt, found[:-1]))[None])[0, len(prompt) - 1 :]
    behind = scores.max(-1).values - scores.gather(1, found[:, None])[:, 0]
    return int((behind <= TIE * scores.std()).sum())
