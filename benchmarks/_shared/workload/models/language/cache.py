"""Keys and values of tokens that a decoder has seen, kept so that each new token is computed alone."""

from __future__ import annotations

import torch
from torch import Tensor

from workload.models.language.attention import attend, attend_in_graph
from workload.models.language.shapes import Shape


class Cache:
    """Room for `rows` sequences of up to `length` tokens: (layers, rows, heads, length, width)."""

    def __init__(self, shape: Shape, rows: int, length: int, device: torch.device, dtype: torch.dtype) -> None:
        size = (shape.layers, rows, shape.kv_heads, length, shape.head_width)
        self.keys = torch.zeros(size, device=device, dtype=dtype)
        self.values = torch.zeros(size, device=device, dtype=dtype)
        self.rows = torch.arange(rows, device=device)
        self.length = length

    @property
    def bytes(self) -> int:
        return 2 * self.keys.numel() * self.keys.element_size()


class Prefill:
    """Whole prompts, put into the rows from `first` on."""

    def __init__(self, cache: Cache, first: int = 0) -> None:
        self._cache = cache
        self._first = first

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        rows, length = slice(self._first, self._first + key.shape[0]), key.shape[2]
        self._cache.keys[layer, rows, :, :length] = key
        self._cache.values[layer, rows, :, :length] = value
        return attend(query, key, value, causal=True)


class PrefillSlot:
    """One whole prompt, put into the row whose number is in `slot` (1)."""

    def __init__(self, cache: Cache, slot: Tensor) -> None:
        self._cache = cache
        self._slot = slot

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        length = key.shape[2]
        self._cache.keys[layer, :, :, :length].index_copy_(0, self._slot, key)
        self._cache.values[layer, :, :, :length].index_copy_(0, self._slot, value)
        return attend(query, key, value, causal=True)


class DecodeInGraph:
    """One more token for every row, all of them at `place`, in a CUDA graph for that place."""

    def __init__(self, cache: Cache, place: int) -> None:
        self._cache = cache
        self._place = place

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        keys, values = self._cache.keys[layer], self._cache.values[layer]
        keys[:, :, self._place] = key[:, :, 0]
        values[:, :, self._place] = value[:, :, 0]
        return attend_in_graph(query, keys[:, :, : self._place + 1], values[:, :, : self._place + 1])


class Decode:
    """One more token for every row, at `places` (rows); `seen`: so many tokens of the cache are looked at.

    `mask` (rows, 1, 1, seen) is true where a row may look; without it every row looks at all of them.
    """

    def __init__(self, cache: Cache, places: Tensor, seen: int, mask: Tensor | None) -> None:
        self._cache = cache
        self._places = places
        self._seen = seen
        self._mask = mask

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        keys, values = self._cache.keys[layer], self._cache.values[layer]
        keys[self._cache.rows, :, self._places] = key[:, :, 0]
        values[self._cache.rows, :, self._places] = value[:, :, 0]
        return attend(query, keys[:, :, : self._seen], values[:, :, : self._seen], self._mask)
